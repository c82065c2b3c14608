"""Several nodes on one server at once: nothing is planned, sent or settled twice, and nobody waits for ever."""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest
from sqlalchemy import delete, select, text

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome, PendingRun, Phase
from jobwheel.admin.domain.writes import Accepted, Applied, RunWrite, Settlement, Unconfirmed
from jobwheel.admin.engine.claim import ClaimLimits
from jobwheel.admin.engine.claimer import Claimer
from jobwheel.admin.store import Connection, claims, registry, run_log, runs
from jobwheel.admin.store import take_off as take_offs
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.errors import ScheduleLockedError
from jobwheel.admin.store.limits import turn_of
from jobwheel.admin.store.tables import job_group, job_info, job_lock, job_log
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import RegistryRequest
from tests.support.live_admin import seen
from tests.support.server_statements import sleep
from tests.support.store import NOW_MS, Store, take_off

NODES = (NodeId(1), NodeId(2))
WAITERS = {
    "postgresql": "SELECT COUNT(*) FROM pg_locks WHERE NOT granted",
    "mysql": """SELECT variable_value + 0 FROM information_schema.global_status
                WHERE variable_name = 'innodb_row_lock_current_waits'""",
}


@pytest.fixture
def store(server_store: Store) -> Store:
    return server_store


@pytest.fixture
async def other(server_url: str, store: Store) -> AsyncIterator[Database]:
    """The database as a second node has it open."""
    opened = open_database(server_url, SystemClock())
    await opened.start()
    yield opened
    await opened.stop()


def then_sleep(seconds: float, work: Callable[[Connection], object]) -> Callable[[Connection], object]:
    """Do something, and keep the transaction open for a while."""

    def both(connection: Connection) -> object:
        answer = work(connection)
        sleep(connection, seconds)
        return answer

    return both


class Node:
    """A claimer of one node, and what it planned."""

    def __init__(self, store: Store, database: Database, node_id: NodeId, most_runs: int = 200) -> None:
        self.planned: list[PendingRun] = []
        limits = ClaimLimits(1.0, most_runs)
        self.claimer = Claimer(database, store.zone, store.clock, lambda: node_id, self.planned.extend, limits)

    async def claim_until(self, enough: Callable[[], bool]) -> None:
        while not enough():
            # The other one may have had the lock at each try; what follows a pass that fails is the next pass.
            with contextlib.suppress(ScheduleLockedError):
                await self.claimer.run_once()
            await SystemClock().wait(0.01)


async def _jobs_all_over_the_second(store: Store, count: int) -> list[JobId]:
    """Jobs of every second, each at a moment of its own: whoever claims finds some, and so does the other one next.

    Were they all due at once, one claim would have them all, and chance alone would say whose it is.
    """
    next_second_ms = SystemClock().now() // 1000 * 1000 + 1000
    firsts = [next_second_ms + 1000 * n // count for n in range(count)]
    rate = {"schedule_type": "FIX_RATE", "schedule_conf": "1"}
    return [await store.job(**rate, anchor_ms=each, trigger_next_time=each) for each in firsts]


async def test_two_nodes_that_claim_at_once_plan_each_instant_once(store: Store, other: Database) -> None:
    jobs = await _jobs_all_over_the_second(store, 150)
    nodes = [Node(store, database, node_id) for database, node_id in zip((store.database, other), NODES, strict=True)]

    def enough() -> bool:
        instants = Counter(run.job_id for node in nodes for run in node.planned)
        return all(node.planned for node in nodes) and len(instants) == len(jobs) and min(instants.values()) >= 4

    async with asyncio.timeout(8), asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(node.claim_until(enough))
    planned = Counter((run.job_id, run.planned_ms) for node in nodes for run in node.planned)
    assert set(planned.values()) == {1}
    stored = await store.database.read(lambda c: c.execute(select(job_log.c.job_id, job_log.c.planned_ms)).all())
    assert Counter(tuple(row) for row in stored) == planned
    for job_id in jobs:
        instants = sorted(at_ms for job, at_ms in planned if job == job_id)
        assert {later - earlier for earlier, later in itertools.pairwise(instants)} == {1000}
        assert (await store.job_row(job_id))["trigger_next_time"] == instants[-1] + 1000


async def test_without_the_lock_row_two_nodes_plan_each_instant_once_as_well(store: Store, other: Database) -> None:
    clock = SystemClock()
    nodes = [Node(store, database, node_id) for database, node_id in zip((store.database, other), NODES, strict=True)]
    for _ in range(15):
        await store.job(trigger_next_time=clock.now() // 1000 * 1000)
        await store.database.write(lambda c: c.execute(delete(job_lock)))
        await asyncio.gather(*(node.claimer.run_once() for node in nodes))
        assert await store.database.read(lambda c: len(c.execute(select(job_lock)).all())) == 1
    planned = Counter((run.job_id, run.planned_ms) for node in nodes for run in node.planned)
    assert set(planned.values()) == {1}


async def test_who_makes_the_missing_lock_row_holds_it(store: Store, other: Database) -> None:
    holding = asyncio.create_task(store.database.write(then_sleep(0.5, claims.lock_schedule)))
    await SystemClock().wait(0.2)
    try:
        await other.write(claims.lock_schedule)
    except ScheduleLockedError:
        assert not holding.done()
        await holding
    else:
        # It waited; the first one's task may have to be told yet.
        await asyncio.wait_for(holding, 0.1)


async def test_a_lock_that_somebody_holds_is_not_waited_for(store: Store, other: Database) -> None:
    await store.database.write(claims.lock_schedule)
    holding = asyncio.create_task(store.database.write(then_sleep(1.0, claims.lock_schedule)))
    await SystemClock().wait(0.3)
    began_s = SystemClock().monotonic()
    with pytest.raises(ScheduleLockedError):
        await other.write(claims.lock_schedule)
    assert SystemClock().monotonic() - began_s < 0.3
    await holding
    await other.write(claims.lock_schedule)


async def test_a_claim_waits_for_a_short_while_and_says_when_it_takes_too_long(store: Store, other: Database) -> None:
    await store.database.write(claims.lock_schedule)
    await store.job(trigger_next_time=SystemClock().now() // 1000 * 1000)
    node = Node(store, other, NODES[1])
    holding = asyncio.create_task(store.database.write(then_sleep(4.5, claims.lock_schedule)))
    await SystemClock().wait(0.2)
    with pytest.raises(ScheduleLockedError, match="schedule_lock of xxl_job_lock"):
        await node.claimer.run_once()
    assert not holding.done()
    await holding
    short = asyncio.create_task(store.database.write(then_sleep(0.3, claims.lock_schedule)))
    await SystemClock().wait(0.1)
    assert await node.claimer.run_once() >= 1
    await short


async def test_a_run_that_two_nodes_want_takes_off_from_its_owner_alone(store: Store, other: Database) -> None:
    runs = [run.id for run in await store.pending(NODES[0], *range(NOW_MS, NOW_MS + 300))]
    wanted = [take_off(run_id) for run_id in runs]
    answers = await asyncio.gather(
        *(database.write(run_log.take_off, NODES[0], NOW_MS, wanted) for database in (store.database, other) * 4)
    )
    assert sorted(run_id for answer in answers for run_id in answer) == runs


def _writes(runs: Sequence[RunId], node: int) -> list[RunWrite]:
    writes: list[RunWrite] = [Accepted(run_id, NOW_MS, None, f"accepted by {node}\n") for run_id in runs]
    writes += [Unconfirmed(run_id, NOW_MS, NOW_MS + 10_000, "late\n") for run_id in runs[::7]]
    writes += [Settlement(run_id, NOW_MS + node, 200, Outcome.SUCCEEDED, f"by {node}") for run_id in runs]
    return writes


async def test_batches_of_the_same_runs_lose_no_result_and_count_none_twice(store: Store, other: Database) -> None:
    runs = [run.id for run in await store.pending(NODES[0], *range(NOW_MS, NOW_MS + 400))]
    await store.database.write(run_log.take_off, NODES[0], NOW_MS, [take_off(run_id) for run_id in runs])

    def apply(database: Database, part: Sequence[RunId], node: int) -> Awaitable[Applied]:
        # Neither in the order of the ids nor in the same order as the others.
        writes = _writes(part, node)
        return database.write(run_log.apply, store.zone, NODES[0], writes[node:] + writes[:node])

    parts = [runs, runs[::-1], runs[::2], runs[1::2], runs[100:300], runs[:250]]
    applied = await asyncio.gather(
        *(apply((store.database, other)[n % 2], part, n) for n, part in enumerate(parts)),
    )
    assert sum(len(each.ended) for each in applied) == len(runs)
    rows = await store.database.read(lambda c: c.execute(select(job_log)).all())
    for row in rows:
        assert (row.phase, row.outcome, row.owner, row.check_ms) == (None, "succeeded", None, None)
        assert row.handle_msg == f"by {row.ended_ms - NOW_MS}"


async def test_two_nodes_that_end_the_last_runs_of_a_job_give_it_its_next_time(store: Store, other: Database) -> None:
    job_id = await store.job(schedule_type="FIX_DELAY", schedule_conf="7", trigger_next_time=AWAITING_SETTLEMENT_MS)
    runs = [await store.sending(NODES[0], job_id) for _ in range(2)]

    def end(run_id: RunId) -> Callable[[Connection], object]:
        result = Settlement(run_id, NOW_MS, 200, Outcome.SUCCEEDED, "")
        # Both are at it before either is committed.
        return then_sleep(0.3, lambda c: run_log.apply(c, store.zone, NODES[0], [result]))

    await asyncio.gather(store.database.write(end(runs[0])), other.write(end(runs[1])))
    assert (await store.job_row(job_id))["trigger_next_time"] == NOW_MS + 7000


async def test_the_ends_of_runs_hold_their_jobs_in_the_order_of_ids(store: Store, other: Database) -> None:
    first = await store.job(run_limit=1)
    waits = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": AWAITING_SETTLEMENT_MS}
    second = await store.job(**waits)
    results = [
        Settlement(await store.sending(NODES[0], job_id), NOW_MS, 200, Outcome.SUCCEEDED, "")
        for job_id in (first, second)
    ]
    held, freed = asyncio.Event(), asyncio.Event()

    def hold(connection: Connection, job_id: JobId, *, nowait: bool = False) -> None:
        row = select(job_info.c.id).where(job_info.c.id == job_id)
        connection.execute(row.with_for_update(nowait=nowait)).one()

    async def hold_first() -> None:
        """As a take-off does that has held the first job, and is about to hold the second."""
        engine = other._engines[False]  # type: ignore[attr-defined]
        async with engine.begin() as connection:
            await connection.run_sync(hold, first)
            held.set()
            await freed.wait()
            await connection.run_sync(hold, second, nowait=True)

    async def somebody_waits() -> bool:
        return bool(await store.database.read(lambda c: c.exec_driver_sql(WAITERS[c.dialect.name]).scalar()))

    async with asyncio.TaskGroup() as group:
        group.create_task(hold_first())
        await held.wait()
        applied = group.create_task(store.apply(NODES[0], *results))
        await seen(somebody_waits)
        freed.set()
    assert len(applied.result().ended) == 2


async def test_an_executor_that_beats_at_two_nodes_at_once_is_written_once(store: Store, other: Database) -> None:
    for n in range(20):
        request = RegistryRequest(registry_group="EXECUTOR", registry_key="orders", registry_value=f"http://a:{n}/")
        await asyncio.gather(
            *(database.write(registry.beat, store.zone, request, NOW_MS) for database in (store.database, other) * 2)
        )
    count = text("SELECT COUNT(*) FROM xxl_job_registry")
    assert await store.database.read(lambda c: c.execute(count).scalar()) == 20


async def test_of_two_nodes_that_hear_of_an_executor_each_neither_loses_the_others(
    store: Store, other: Database
) -> None:
    await store.group("orders")

    def register(connection: Connection, number: int) -> None:
        address = f"http://10.0.0.{number}:9999/"
        request = RegistryRequest(registry_group="EXECUTOR", registry_key="orders", registry_value=address)
        registry.beat(connection, store.zone, request, NOW_MS)
        registry.store_address_lists(connection, store.zone, NOW_MS)

    first = asyncio.create_task(store.database.write(then_sleep(0.5, lambda c: register(c, 1))))
    await SystemClock().wait(0.2)
    await other.write(register, 2)
    await first
    found = await store.database.read(lambda c: c.execute(select(job_group.c.address_list)).scalar())
    assert found == "http://10.0.0.1:9999/,http://10.0.0.2:9999/"


class Sender:
    """A node that takes runs of one job off, and ends those that it sent."""

    def __init__(self, store: Store, database: Database, node_id: NodeId, job_id: JobId) -> None:
        self.store, self.database, self.node_id, self.job_id = store, database, node_id, job_id
        self.sent: list[RunId] = []

    async def take_off(self) -> None:
        """Take off whatever of the node's runs there is room for."""
        ids = await self.database.read(runs.own_pending_ids, self.node_id, NOW_MS + 1000, 100)
        wanted = await self.database.read(runs.load_pending, self.node_id, ids)
        limited = {self.job_id: {run.id: turn_of(run) for run in wanted}}
        batch = take_offs.Batch([take_off(run.id) for run in wanted], limited)
        taken = await self.database.write(take_offs.take_off, self.store.zone, self.node_id, NOW_MS, batch)
        self.sent += taken.matched

    async def end(self, run_id: RunId) -> None:
        """Write a result, wherever the run was sent from."""
        result = Settlement(run_id, NOW_MS, 200, Outcome.SUCCEEDED, "")
        await self.database.write(run_log.apply, self.store.zone, self.node_id, [result])


async def under_way(store: Store) -> list[RunId]:
    sending = select(job_log.c.id).where(job_log.c.phase == Phase.SENDING)
    return await store.database.read(lambda c: [RunId(run_id) for run_id in c.execute(sending).scalars()])


async def test_the_limit_of_a_job_holds_over_two_nodes(store: Store, other: Database) -> None:
    job_id = await store.job(run_limit=2)
    planned = [await store.pending(node_id, *[NOW_MS] * 20, job_id=job_id) for node_id in NODES]
    senders = [
        Sender(store, database, node_id, job_id)
        for database, node_id in zip((store.database, other), NODES, strict=True)
    ]
    ended: list[RunId] = []
    most = 0
    async with asyncio.timeout(8):
        while len(ended) < 40:
            sending = await under_way(store)
            most = max(most, len(sending))
            # While one node ends a run and calls the next, both take off.
            ends = [senders[(run_id + len(ended)) % 2].end(run_id) for run_id in sending]
            await asyncio.gather(*(sender.take_off() for sender in senders * 2), *ends)
            ended += sending
    assert most == 2
    assert sorted(ended) == sorted(run.id for of_node in planned for run in of_node)
    assert sorted(senders[0].sent + senders[1].sent) == sorted(ended)
    assert all(sender.sent for sender in senders)


def claimer(store: Store, planned: list[PendingRun]) -> Claimer:
    return Claimer(store.database, store.zone, store.clock, lambda: NodeId(1), planned.extend, ClaimLimits())


async def hold_again_and_again(other: Database, seconds: float) -> None:
    """A node that has much to claim: it has the lock nearly all the time."""
    while True:
        try:
            await other.write(then_sleep(seconds, claims.lock_schedule))
        except ScheduleLockedError:
            await SystemClock().wait(0.001)


async def test_a_claim_comes_between_those_of_a_node_that_has_much_to_claim(store: Store, other: Database) -> None:
    planned: list[PendingRun] = []
    job = await store.job(trigger_next_time=SystemClock().now() // 1000 * 1000)
    holding = asyncio.create_task(hold_again_and_again(other, 0.05))
    try:
        await asyncio.wait_for(claimer(store, planned).run_once(), 5)
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert {run.job_id for run in planned} == {job}
