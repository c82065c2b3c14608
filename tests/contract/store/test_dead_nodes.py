"""What becomes of the runs of nodes that died: taken over once, by one heir, and only if they really are silent."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.engine.node import Node
from jobwheel.admin.store import nodes, schema
from jobwheel.admin.store.alarm_outbox import give
from jobwheel.admin.store.alarm_sending import take
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.alarms import add_channel, facts, outbox
from tests.support.store import FIRST_LOOKS, INSTANCE, NOW_MS, ZONE, Store

DEAD_AFTER_MS = 15_000
LATER_MS = NOW_MS + DEAD_AFTER_MS + 1


async def bury(store: Store, heir: NodeId, now_ms: int = LATER_MS) -> list[nodes.Heritage]:
    return await store.database.write(nodes.adopt_dead, heir, now_ms, DEAD_AFTER_MS, FIRST_LOOKS)


async def test_a_silent_nodes_runs_are_taken_over(store: Store) -> None:
    dead, heir = await store.node(), await store.node()
    await store.database.write(nodes.beat, heir, LATER_MS)
    pending = (await store.pending(dead))[0]
    ours, others = await store.sending(dead, instance_id=INSTANCE), await store.sending(dead)
    assert await bury(store, heir) == [nodes.Heritage(dead, nodes.Adopted(1, 2))]
    assert (await store.run_row(pending.id))["owner"] == heir
    for run_id, check_ms in ((ours, LATER_MS), (others, LATER_MS + FIRST_LOOKS.ask_ms)):
        row = await store.run_row(run_id)
        assert (row["phase"], row["owner"], row["check_ms"]) == ("unconfirmed", None, check_ms)
    assert [row[0] for row in await store.database.read(nodes.live_nodes)] == [heir]


@pytest.mark.parametrize("is_alone", [True, False])
async def test_a_run_that_its_job_sends_again_waits_no_longer_than_after_another_failure(
    store: Store, *, is_alone: bool
) -> None:
    dead, heir = await store.node(), await store.node()
    again, asked = await store.job(uncertain_send="SEND_AGAIN"), await store.job(uncertain_send="ASK")
    run_ids = [await store.sending(dead, each) for each in (again, asked, 77)]
    ours = await store.sending(dead, again, INSTANCE)
    if is_alone:
        await store.database.write(nodes.adopt_all, heir, LATER_MS, FIRST_LOOKS)
    else:
        await store.database.write(nodes.beat, heir, LATER_MS)
        await bury(store, heir)
    looks = [(await store.run_row(run_id))["check_ms"] - LATER_MS for run_id in (*run_ids, ours)]
    assert looks == [10_000, 60_000, 60_000, 0]


async def test_an_alarm_that_a_dead_node_was_sending_is_due_at_once(store: Store) -> None:
    dead, heir, other = [await store.node() for _ in range(3)]
    for node in (heir, other):
        await store.database.write(nodes.beat, node, LATER_MS)
    channel_id = await add_channel(store.database)
    for run_id, node in ((1, dead), (2, other)):
        await store.database.write(give, channel_id, f"run {run_id}", facts(NOW_MS, run_id=run_id), NOW_MS)
        taken = await store.database.write(take, channel_id, node, LATER_MS, LATER_MS + 60_000)
        assert taken.alarm is not None
    await bury(store, heir)
    rows = [(row["owner"], row["due_ms"] - LATER_MS, row["attempts"]) for row in await outbox(store.database)]
    assert rows == [(None, 0, 1), (other, 60_000, 1)]
    again = await store.database.write(take, channel_id, heir, LATER_MS, LATER_MS + 60_000)
    assert again.alarm is not None
    assert (again.alarm.facts.run_id, again.alarm.attempt) == (1, 2)


async def test_a_node_that_beats_keeps_its_runs(store: Store) -> None:
    lively, heir = await store.node(), await store.node()
    pending = (await store.pending(lively))[0]
    await store.database.write(nodes.beat, lively, LATER_MS - DEAD_AFTER_MS)
    assert await bury(store, heir) == []
    assert (await store.run_row(pending.id))["owner"] == lively


async def test_of_two_heirs_one_finds_nothing(store: Store) -> None:
    dead, first, second = await store.node(), await store.node(), await store.node()
    for heir in (first, second):
        await store.database.write(nodes.beat, heir, LATER_MS)
    pending = (await store.pending(dead))[0]
    assert len(await bury(store, first)) == 1
    assert await bury(store, second) == []
    assert (await store.run_row(pending.id))["owner"] == first


async def test_runs_written_after_the_burial_are_found(store: Store) -> None:
    dead, heir = await store.node(), await store.node()
    await store.database.write(nodes.beat, heir, LATER_MS)
    await bury(store, heir)
    # The dead one was frozen in the middle of its claim, and commits it now.
    late = (await store.pending(dead))[0]
    assert await bury(store, heir) == [nodes.Heritage(dead, nodes.Adopted(1, 0))]
    assert (await store.run_row(late.id))["owner"] == heir


@pytest.mark.parametrize("address", [None, ""])
async def test_a_run_that_was_to_fail_without_an_address_has_its_turn_again(store: Store, address: str | None) -> None:
    heir, dead = await store.node(), NodeId(77)
    nowhere, somewhere = [await store.sending(dead) for _ in range(2)]
    await store.change_run(nowhere, executor_address=address)
    assert await bury(store, heir) == [nodes.Heritage(dead, nodes.Adopted(1, 1))]
    row = await store.run_row(nowhere)
    assert (row["phase"], row["owner"], row["sent_ms"]) == ("pending", heir, None)
    assert (await store.run_row(somewhere))["phase"] == "unconfirmed"


async def test_so_it_has_where_the_file_proves_that_all_others_are_dead(store: Store) -> None:
    heir, dead = await store.node(), NodeId(77)
    nowhere, somewhere = [await store.sending(dead) for _ in range(2)]
    await store.change_run(nowhere, executor_address=None)
    assert await store.database.write(nodes.adopt_all, heir, NOW_MS, FIRST_LOOKS) == nodes.Adopted(1, 1)
    assert ((await store.run_row(nowhere))["phase"], (await store.run_row(somewhere))["phase"]) == (
        "pending",
        "unconfirmed",
    )


async def test_runs_that_nobody_owns_are_left_to_the_feeder(store: Store) -> None:
    heir = await store.node()
    run = (await store.pending(None))[0]
    assert await bury(store, heir) == []
    assert (await store.run_row(run.id))["owner"] is None


class Pair:
    """Two nodes on one database, driven by hand."""

    def __init__(self, store: Store, first: Node, second: Node, clock: FakeClock) -> None:
        self.store, self.first, self.second, self.clock = store, first, second, clock


async def beating(clock: FakeClock, *nodes_that_beat: Node, seconds: int) -> None:
    for _ in range(seconds // 5):
        await clock.advance(5)
        for node in nodes_that_beat:
            await node.beat()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    clock = FakeClock(NOW_MS)
    database = open_database(f"sqlite:///{quote(str(tmp_path / 'jobwheel.db'))}", clock, exclusive=False)
    await database.start()
    await database.write(schema.prepare, "test")
    pair = Pair(Store(database, InstallationZone(ZONE), clock), Node(database, clock), Node(database, clock), clock)
    for node in (pair.first, pair.second):
        await node.start()
        await node._beats.stop()
    yield pair
    for node in (pair.first, pair.second):
        await node.stop()
    await database.stop()


async def test_a_node_buries_one_that_is_silent(pair: Pair) -> None:
    run = (await pair.store.pending(pair.second.id))[0]
    await beating(pair.clock, pair.first, seconds=20)
    assert (await pair.store.run_row(run.id))["owner"] == pair.first.id


async def test_a_node_whose_clock_is_off_is_no_heir(pair: Pair) -> None:
    run = (await pair.store.pending(pair.second.id))[0]
    pair.clock.step(5)
    await beating(pair.clock, pair.first, seconds=30)
    assert (await pair.store.run_row(run.id))["owner"] == pair.second.id
    pair.clock.step(-5)
    await pair.first.beat()
    assert (await pair.store.run_row(run.id))["owner"] == pair.first.id


async def test_both_that_beat_live_on(pair: Pair) -> None:
    ids = pair.first.id, pair.second.id
    await beating(pair.clock, pair.first, pair.second, seconds=60)
    assert (pair.first.id, pair.second.id) == ids


async def test_after_an_outage_nobody_is_an_heir_before_the_others_could_beat(pair: Pair) -> None:
    await beating(pair.clock, pair.first, pair.second, seconds=30)
    run = (await pair.store.pending(pair.second.id))[0]
    await pair.clock.advance(60)
    # The database is back, and the first node is the first to notice.
    await pair.first.beat()
    await beating(pair.clock, pair.first, seconds=10)
    assert (await pair.store.run_row(run.id))["owner"] == pair.second.id
    second = pair.second.id
    await pair.second.beat()
    assert pair.second.id == second
    await beating(pair.clock, pair.first, pair.second, seconds=30)
    assert (await pair.store.run_row(run.id))["owner"] == second


async def test_a_node_that_was_declared_dead_goes_on_under_a_new_id_and_forgets_its_runs(pair: Pair) -> None:
    forgotten = []
    pair.second.forget = lambda: forgotten.append(pair.second.id)
    before = pair.second.id
    await beating(pair.clock, pair.first, seconds=20)
    await pair.second.beat()
    assert pair.second.id > before
    assert forgotten == [pair.second.id]
    # It is no heir to anybody before it has beaten for long enough itself.
    run = (await pair.store.pending(pair.first.id))[0]
    await pair.clock.advance(20)
    await pair.second.beat()
    assert (await pair.store.run_row(run.id))["owner"] == pair.first.id


async def test_a_node_is_fresh_for_ten_seconds_after_a_heartbeat_began(pair: Pair) -> None:
    fresh = [pair.first.is_fresh]
    for seconds in (9.9, 0.1):
        await pair.clock.advance(seconds)
        fresh.append(pair.first.is_fresh)
    await pair.first.beat()
    fresh.append(pair.first.is_fresh)
    assert fresh == [True, True, False, True]


async def test_however_many_ask_a_woken_node_beats_once(pair: Pair) -> None:
    before = pair.second.id
    await beating(pair.clock, pair.first, seconds=20)
    await asyncio.gather(*(pair.second.confirm() for _ in range(10)))
    assert pair.second.id == before + 1
    pair.first.forget = pytest.fail
    await pair.store.database.write(nodes.unregister, pair.first.id)
    # It is fresh, so nobody asks the database.
    await pair.first.confirm()


async def test_a_node_whose_machine_was_suspended_is_not_fresh(pair: Pair) -> None:
    # Its monotonic clock stood still; the runs were adopted all the same.
    pair.clock.suspend(11)
    assert not pair.first.is_fresh


async def test_a_node_that_is_alone_buries_nobody(tmp_path: Path) -> None:
    clock = FakeClock(NOW_MS)
    database = open_database(f"sqlite:///{quote(str(tmp_path / 'jobwheel.db'))}", clock)
    await database.start()
    await database.write(schema.prepare, "test")
    store, node = Store(database, InstallationZone(ZONE), clock), Node(database, clock)
    await node.start()
    await node._beats.stop()
    other = await store.node()
    await beating(clock, node, seconds=30)
    assert [row[0] for row in await database.read(nodes.live_nodes)] == [node.id, other]
    await node.stop()
    await database.stop()


async def test_accepted_runs_of_an_earlier_version_are_looked_at(store: Store) -> None:
    node = await store.node()
    forgotten, looked_at, done = [await store.sending(node, instance_id=INSTANCE) for _ in range(3)]
    for run_id, look_ms in ((forgotten, None), (looked_at, NOW_MS + 5)):
        await store.change_run(run_id, phase="accepted", owner=None, check_ms=look_ms, unheard_ms=look_ms)
    await store.change_run(done, phase=None, owner=None)
    sending = await store.sending(node)
    assert await store.database.write(nodes.look_at_all_accepted, LATER_MS) == 1
    rows = [await store.run_row(run_id) for run_id in (forgotten, looked_at, done, sending)]
    looks = [(row["check_ms"], row["unheard_ms"]) for row in rows]
    assert looks == [(LATER_MS, LATER_MS), (NOW_MS + 5, NOW_MS + 5), (None, None), (None, None)]
    assert await store.database.write(nodes.look_at_all_accepted, LATER_MS) == 0
