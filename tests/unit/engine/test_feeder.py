from collections.abc import AsyncIterator

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.context import EngineContext, EngineLimits
from jobwheel.admin.engine.feeder import Feeder
from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.store import NOW_MS, Store


class Feeding:
    """A feeder of a started node, with a wheel that nobody turns."""

    def __init__(self, store: Store, clock: FakeClock, capacity: int) -> None:
        self.node = Node(store.database, clock)
        limits = EngineLimits(claim_batch=3, wheel_capacity=capacity)
        context = EngineContext(store.database, store.zone, clock, self.node, Counters(), limits)
        self.wheel = TimingWheel(lambda _: None, clock, capacity)
        self.put_off: list[JobId] = []
        self.feeder = Feeder(context, self.wheel, lambda: self.put_off)

    async def feed(self) -> int:
        return await self.feeder.run_once()

    def held(self, runs: list[PendingRun]) -> list[bool]:
        return [self.wheel.holds(run.id) for run in runs]


@pytest.fixture
async def feeding(store: Store, clock: FakeClock) -> AsyncIterator[Feeding]:
    made = Feeding(store, clock, 100)
    await made.node.start()
    yield made
    await made.node.stop()


async def test_own_runs_within_the_look_ahead_are_brought_once(store: Store, feeding: Feeding) -> None:
    runs = await store.pending(feeding.node.id, NOW_MS - 60_000, NOW_MS, NOW_MS + 5000, NOW_MS + 5001)
    assert await feeding.feed() == 3
    assert feeding.held(runs) == [True, True, True, False]
    assert await feeding.feed() == 0


async def test_more_than_a_batch_is_brought_in_one_pass(store: Store, feeding: Feeding) -> None:
    runs = await store.pending(feeding.node.id, *(NOW_MS + n for n in range(20)))
    assert await feeding.feed() == 20
    assert all(feeding.held(runs))


async def test_runs_that_nobody_owns_are_adopted_and_brought(store: Store, feeding: Feeding) -> None:
    runs = await store.pending(None, *(NOW_MS + n for n in range(5)))
    # A batch of three in each pass.
    assert [await feeding.feed() for _ in range(3)] == [3, 2, 0]
    assert all(feeding.held(runs))
    assert (await store.run_row(runs[4].id))["owner"] == feeding.node.id


async def test_runs_of_others_and_runs_that_took_off_are_left_alone(store: Store, feeding: Feeding) -> None:
    foreign = await store.pending(feeding.node.id + 1)  # type: ignore[arg-type]
    await store.sending(feeding.node.id)
    assert await feeding.feed() == 0
    assert feeding.held(foreign) == [False]


async def test_what_does_not_fit_waits_in_the_database_earliest_first(store: Store, clock: FakeClock) -> None:
    small = Feeding(store, clock, 4)
    await small.node.start()
    runs = await store.pending(small.node.id, *(NOW_MS + 10 - n for n in range(6)))
    assert await small.feed() == 4
    assert small.held(runs) == [False, False, True, True, True, True]
    assert await small.feed() == 0
    small.wheel.forget(run.id for run in runs[2:])
    await store.database.write(
        lambda c: c.exec_driver_sql("UPDATE xxl_job_log SET phase = 'sending' WHERE due_ms < ?", (NOW_MS + 9,))
    )
    assert await small.feed() == 2
    assert small.held(runs)[:2] == [True, True]
    await small.node.stop()


async def test_what_is_left_in_the_database_is_counted_once_it_is_due(store: Store, clock: FakeClock) -> None:
    small = Feeding(store, clock, 4)
    await small.node.start()
    await store.pending(small.node.id, *(NOW_MS - n for n in range(5)), NOW_MS + 1000, NOW_MS + 2000)
    assert (await small.feed(), small.feeder.left) == (4, 1)
    let_out = small.wheel.take_due()
    # Those that were let out are in memory still; the others come due.
    clock.step(2)
    assert (await small.feed(), small.feeder.left) == (0, 3)
    small.wheel.forget(run.id for run in let_out)
    await store.database.write(lambda c: c.exec_driver_sql("UPDATE xxl_job_log SET phase = 'sending'"))
    assert (await small.feed(), small.feeder.left) == (0, 0)
    await store.pending(small.node.id, *(NOW_MS + n for n in range(3)), job_id=7)
    small.put_off = [JobId(7)]
    assert (await small.feed(), small.feeder.left) == (0, 3)
    await small.node.stop()


async def test_a_run_that_was_let_out_is_not_brought_again_before_its_take_off_is_decided(
    store: Store, feeding: Feeding
) -> None:
    runs = await store.pending(feeding.node.id)
    assert await feeding.feed() == 1
    assert [run.id for run in feeding.wheel.take_due()] == [runs[0].id]
    assert await feeding.feed() == 0
    # The take-off failed for good and the run is pending still: then it is brought again.
    feeding.wheel.forget([runs[0].id])
    assert await feeding.feed() == 1


async def test_runs_of_jobs_that_were_put_off_wait_until_they_are_not(store: Store, feeding: Feeding) -> None:
    put_off = await store.pending(feeding.node.id, *(NOW_MS + n for n in range(5)), job_id=7)
    others = await store.pending(feeding.node.id, NOW_MS + 9, job_id=8)
    feeding.put_off = [JobId(7), JobId(9)]
    assert await feeding.feed() == 1
    assert feeding.held(others) == [True]
    feeding.put_off = []
    assert await feeding.feed() == 5
    assert all(feeding.held(put_off))
