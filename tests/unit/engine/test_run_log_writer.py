"""The run log's writer while batches are under way: what goes together, and who waits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Accepted, RunWrite, Settlement, Unconfirmed, Unsent
from jobwheel.admin.engine.context import EngineContext, EngineLimits
from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.run_log_writer import RunLogWriter
from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.eventually import eventually
from tests.support.store import INSTANCE, NOW_MS, Store

FULL = 1000


class Batches:
    """What is written, batch by batch; each waits until it is let through, or fails."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._write = store.database.write_batch
        self.let_through = asyncio.Event()
        self.errors: list[Exception] = []
        self.begun: list[Sequence[RunWrite]] = []
        monkeypatch.setattr(store.database, "write_batch", self._held)

    async def _held(self, work: Callable[..., Any], zone: Any, node_id: NodeId, writes: Any, *rest: Any) -> Any:
        self.begun.append(writes)
        await self.let_through.wait()
        if self.errors:
            raise self.errors.pop()
        return await self._write(work, zone, node_id, writes, *rest)


@pytest.fixture
async def writer(store: Store, clock: FakeClock) -> AsyncIterator[RunLogWriter]:
    node = Node(store.database, clock)
    await node.start()
    context = EngineContext(store.database, store.zone, clock, node, Counters(), EngineLimits())
    made = RunLogWriter(context, lambda: None, lambda: None, lambda _: None)
    await made.start()
    yield made
    await made.stop()
    await node.stop()


@pytest.fixture
def batches(store: Store, writer: RunLogWriter, monkeypatch: pytest.MonkeyPatch) -> Batches:
    return Batches(store, monkeypatch)


def yes(run_id: int) -> Accepted:
    return Accepted(RunId(run_id), NOW_MS + 10, INSTANCE, "accepted\n")


def result(run_id: int) -> Settlement:
    return Settlement(RunId(run_id), NOW_MS + 900, 200, Outcome.SUCCEEDED, "done")


def unconfirmed(run_id: int) -> Unconfirmed:
    return Unconfirmed(RunId(run_id), NOW_MS + 20, NOW_MS + 20, "no answer\n")


def unsent(run_id: int) -> Unsent:
    return Unsent(RunId(run_id), NOW_MS + 30, 500, Outcome.FAILED, "refused\n")


async def test_a_yes_that_waits_behind_a_batch_goes_with_the_result(
    store: Store, writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    run_ids = [await store.sending(writer._context.node.id) for _ in range(2)]
    first = asyncio.create_task(writer.write_all([result(run_ids[0])]))
    await clock.advance(0.01)
    await eventually(lambda: len(batches.begun) == 1)
    writer.add(yes(run_ids[1]))
    await clock.advance(0.1)
    second = asyncio.create_task(writer.write_all([result(run_ids[1])]))
    await clock.advance(0.1)
    batches.let_through.set()
    await asyncio.wait_for(first, 5)
    await clock.advance(0.1)
    await asyncio.wait_for(second, 5)
    (write,) = batches.begun[1]
    assert isinstance(write, Settlement)
    assert write.accepted == yes(run_ids[1])
    row = await store.run_row(run_ids[1])
    assert (row["outcome"], row["accepted_ms"], row["trigger_msg"]) == ("succeeded", NOW_MS + 10, "accepted\n")


async def test_a_yes_whose_batch_fails_is_written_with_the_next_try(
    store: Store, writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    run_id = await store.sending(writer._context.node.id)
    batches.errors.append(OSError("in a test"))
    batches.let_through.set()
    writer.add(yes(run_id))
    await clock.advance(5)
    await eventually(lambda: len(batches.begun) == 2 and not len(writer))
    await writer.stop()
    assert (await store.run_row(run_id))["phase"] == "accepted"
    assert list(map(list, batches.begun)) == [[yes(run_id)], [yes(run_id)]]


async def test_while_batches_are_full_a_yes_waits_for_its_result(
    writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    writer.add(yes(7))
    full = asyncio.create_task(writer.write_all([result(-n) for n in range(1, FULL + 1)]))
    await clock.advance(0.01)
    await eventually(lambda: len(batches.begun) == 1)
    batches.let_through.set()
    await asyncio.wait_for(full, 5)
    await clock.advance(0.2)
    assert len(batches.begun) == 1
    last = asyncio.create_task(writer.write_all([result(7)]))
    await clock.advance(0.01)
    await asyncio.wait_for(last, 5)
    (write,) = batches.begun[1]
    assert isinstance(write, Settlement)
    assert write.accepted == yes(7)


async def test_answers_whose_results_are_hours_away_do_not_wait_for_each_other(
    writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    for n in range(1, 3 * FULL + 1):
        writer.add(yes(-n))
    # Behind the first batch, which is held, so many gather that the next one is full.
    for _ in range(20):
        await clock.advance(0.01)
    batches.let_through.set()
    async with asyncio.timeout(8):
        while len(writer) or sum(map(len, batches.begun)) < 3 * FULL:
            await clock.advance(0.01)
            assert clock.monotonic() - writer._full_s > 1, "answers make answers wait"
    assert max(map(len, batches.begun)) == FULL


async def test_who_sends_waits_while_it_is_far_behind(writer: RunLogWriter, batches: Batches, clock: FakeClock) -> None:
    await asyncio.wait_for(writer.catch_up(), 1)
    far = [result(-n) for n in range(1, 6 * FULL + 1)]
    written = asyncio.create_task(writer.write_all(far))
    await eventually(lambda: len(writer) == len(far))
    waiting = asyncio.create_task(writer.catch_up())
    await clock.advance(0.1)
    assert not waiting.done()
    batches.let_through.set()
    for _ in range(10):
        await clock.advance(0.1)
    await asyncio.wait_for(waiting, 5)
    await asyncio.wait_for(written, 5)


async def test_results_are_refused_while_the_database_takes_none_and_many_wait(
    writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    """Executors that get no answer send them again and again: each time as many more would wait in the memory."""
    many = [result(-n) for n in range(1, FULL + 1)]
    batches.errors.append(DatabaseUnusableError("here", "database or disk is full"))
    batches.let_through.set()
    first = asyncio.create_task(writer.write_all([result(-1)]))
    await clock.advance(0.01)
    await eventually(lambda: not batches.errors)
    waiting = asyncio.create_task(writer.write_all(many))
    await eventually(lambda: len(writer) == FULL)
    (refused,) = await asyncio.gather(asyncio.wait_for(writer.write_all(many), 1), return_exceptions=True)
    waiting_then = len(writer)
    # What waits is written by itself, and then others are taken again.
    await clock.advance(1)
    await asyncio.wait_for(asyncio.gather(first, waiting), 5)
    again = asyncio.create_task(writer.write_all(many))
    await clock.advance(1)
    await asyncio.wait_for(again, 5)
    assert (type(refused), waiting_then) == (DatabaseUnusableError, FULL)


async def test_a_run_is_held_until_the_last_of_its_writes_is_made(
    store: Store, writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    """Else the recovery took a run for stuck of which an answer was written, while its failure waited for the next."""
    node_id = writer._context.node.id
    answered, failed = await store.sending(node_id), await store.sending(node_id)
    writer.add(unconfirmed(answered))
    first = asyncio.create_task(writer.write_all([result(failed)]))
    await clock.advance(0.01)
    await eventually(lambda: len(batches.begun) == 1)
    writer.add(unsent(answered))
    batches.let_through.set()
    await asyncio.wait_for(first, 5)
    batches.let_through.clear()
    assert (writer.holds(answered), writer.holds(failed)) == (True, False)
    batches.let_through.set()
    await clock.advance(0.01)
    await eventually(lambda: not writer.holds(answered))
    assert (await store.run_row(answered))["outcome"] == "failed"


async def test_a_run_whose_only_write_cannot_be_made_is_held_no_more(
    store: Store, writer: RunLogWriter, batches: Batches, clock: FakeClock
) -> None:
    batches.errors.extend(ValueError("in a test") for _ in range(4))
    batches.let_through.set()
    writer.add(unsent(7))
    assert writer.holds(RunId(7))
    await clock.advance(5)
    await eventually(lambda: not writer.holds(RunId(7)))
    assert not batches.errors
