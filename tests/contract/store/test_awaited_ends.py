"""A FIX_DELAY job that waits for the end of a run goes on, also if whoever ended the run did not see that it waits."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

import pytest
from sqlalchemy.util import await_only

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.services.backfills import Backfills
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.store import Connection, awaited_ends, run_log
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import SystemClock
from tests.support.admin_harness import FakeScheduler
from tests.support.followups import succeeded
from tests.support.store import NOW_MS, Store

pytestmark = pytest.mark.timeout(30)
DELAYED: Mapping[str, object] = {"schedule_type": "FIX_DELAY", "schedule_conf": "60"}

Change = Callable[[Jobs, JobId], Awaitable[object]]


@pytest.fixture
async def other(server_url: str, server_store: Store) -> AsyncIterator[Database]:
    """The server's database as a second node has it open."""
    assert server_store.database.running
    opened = open_database(server_url, SystemClock())
    await opened.start()
    yield opened
    await opened.stop()


async def waiting(store: Store, **columns: object) -> JobId:
    return await store.job(**{**DELAYED, "trigger_next_time": AWAITING_SETTLEMENT_MS, **columns})


async def next_time(store: Store, job_id: JobId) -> int:
    return int((await store.job_row(job_id))["trigger_next_time"])


async def go_on(store: Store) -> bool:
    return await store.database.write(awaited_ends.let_go_on, NOW_MS)


async def test_a_job_that_waits_for_no_run_gets_its_next_time(store: Store) -> None:
    job_id = await waiting(store)
    assert await store.database.read(awaited_ends.jobs_without_end) == [job_id]
    assert await go_on(store)
    assert await next_time(store, job_id) == NOW_MS + 60_000
    assert not await go_on(store)


async def test_jobs_that_wait_for_a_run_or_for_nothing_are_left_alone(store: Store) -> None:
    job_ids = [
        await waiting(store),
        await waiting(store, trigger_status=0),
        await waiting(store, schedule_type="CRON"),
        await waiting(store, trigger_next_time=NOW_MS + 5),
    ]
    await store.sending(await store.node(), job_ids[0])
    assert await store.database.read(awaited_ends.jobs_without_end) == []
    assert not await go_on(store)
    assert [await next_time(store, each) for each in job_ids] == [AWAITING_SETTLEMENT_MS] * 3 + [NOW_MS + 5]


async def test_a_job_goes_on_whose_last_open_run_was_taken_away(store: Store) -> None:
    """It was one of cron when somebody made a backfill, and waits for its runs since it is one of fixed delay."""
    scheduler = FakeScheduler()
    job_id = await store.job(job_group=await store.group())
    await store.pending(await store.node(), job_id=job_id, trigger_type=TriggerType.BACKFILL)
    await Jobs(store.database, store.clock, store.zone, scheduler).update(job_id, DELAYED, version=None, actor="li")
    assert await next_time(store, job_id) == AWAITING_SETTLEMENT_MS
    assert await Backfills(store.database, store.clock, store.zone, scheduler).cancel(job_id, actor="li") == 1
    assert await go_on(store)
    assert await next_time(store, job_id) == NOW_MS + 60_000


async def started(jobs: Jobs, job_id: JobId) -> object:
    return await jobs.start(job_id, actor="li")


async def made_delayed(jobs: Jobs, job_id: JobId) -> object:
    return await jobs.update(job_id, DELAYED, version=None, actor="li")


@pytest.mark.parametrize(
    ("change", "columns"), [(started, {**DELAYED, "trigger_status": 0}), (made_delayed, {})], ids=["start", "edit"]
)
async def test_a_job_goes_on_whose_run_ended_while_it_began_to_wait_for_it(
    server_store: Store, other: Database, change: Change, columns: Mapping[str, object]
) -> None:
    """To the one the job waits for nothing yet, to the other the run is still open."""
    store = server_store
    jobs = Jobs(other, store.clock, store.zone, FakeScheduler())
    node, job_id = await store.node(), await store.job(job_group=await store.group(), **columns)
    run_id = await store.sending(node, job_id)

    def end(connection: Connection) -> None:
        run_log.apply(connection, store.zone, node, [succeeded(run_id)])
        await_only(change(jobs, job_id))

    await store.database.write(end)
    assert (await store.run_row(run_id))["phase"] is None
    assert await next_time(store, job_id) == AWAITING_SETTLEMENT_MS
    assert await go_on(store)
    assert await next_time(store, job_id) == NOW_MS + 60_000
