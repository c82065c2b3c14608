"""Jobs whose runs pile up: told once, with the oldest run, and again after there were fewer."""

from typing import Any

import pytest

from jobwheel.admin.domain.alarm import AlarmKind, JobAlarms
from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.services.alarm_watch import AlarmWatch
from jobwheel.admin.store.alarm_backlogs import look_for_backlogs
from jobwheel.admin.store.job_alarms import read_alarms, stored_alarms, write_watch
from tests.support.alarms import outbox
from tests.support.store import NOW_MS, Store

NODE = NodeId(7)


async def crowded(store: Store, runs: int, **fields: Any) -> tuple[JobId, list[RunId]]:
    """A job with so many accepted runs."""
    alarms = JobAlarms(**fields)
    job_id = await store.job(alarm_settings=stored_alarms(alarms))
    await store.database.write(write_watch, job_id, alarms)
    ids = [each.id for each in await store.pending(NODE, *[NOW_MS] * runs, job_id=job_id)]
    for run_id in ids:
        await store.change_run(run_id, phase="accepted", accepted_ms=NOW_MS)
    return job_id, ids


async def test_more_open_runs_than_the_job_allows_are_told_with_the_oldest(store: Store) -> None:
    job_id, ids = await crowded(store, 3, most_open_runs=2)
    (notice,) = (await store.database.read(look_for_backlogs, NOW_MS)).begun
    assert (notice.kind, notice.job_id, notice.group_id, notice.run_id) == (AlarmKind.BACKLOG, job_id, 1, ids[0])
    assert notice.words == "3 > 2"


@pytest.mark.parametrize("fields", [{"most_open_runs": 3}, {"late_start_s": 10**6}])
async def test_a_job_that_allows_them_is_not_told_of(store: Store, fields: dict[str, int]) -> None:
    await crowded(store, 3, **fields)
    assert not await store.database.read(look_for_backlogs, NOW_MS + 10**9)


async def test_runs_that_are_not_due_or_have_ended_do_not_count(store: Store) -> None:
    job_id, ids = await crowded(store, 3, most_open_runs=2)
    await store.change_run(ids[1], phase=None, outcome="succeeded")
    await store.pending(NODE, NOW_MS + 5000, job_id=job_id)
    assert not await store.database.read(look_for_backlogs, NOW_MS + 4999)
    assert len((await store.database.read(look_for_backlogs, NOW_MS + 5000)).begun) == 1


async def test_it_is_told_once_and_again_after_there_were_fewer(store: Store) -> None:
    watch = AlarmWatch(store.database)
    _, ids = await crowded(store, 2, most_open_runs=1)
    told = [await watch.run_once(), await watch.run_once()]
    assert told == [1, 0]
    await store.change_run(ids[0], phase=None, outcome="succeeded")
    assert await watch.run_once() == 0
    await store.change_run(ids[0], phase="accepted", outcome=None)
    assert await watch.run_once() == 1
    assert [row["kind"] for row in await outbox(store.database)] == ["backlog", "backlog"]


async def test_a_job_that_asks_no_more_is_forgotten(store: Store) -> None:
    job_id, _ = await crowded(store, 2, most_open_runs=1)
    watch = AlarmWatch(store.database)
    assert await watch.run_once() == 1
    await store.database.write(write_watch, job_id, JobAlarms())
    assert (await store.database.read(look_for_backlogs, NOW_MS)).ended == [job_id]
    await watch.run_once()
    assert not await store.database.read(look_for_backlogs, NOW_MS)


def test_the_limit_is_kept_in_the_column() -> None:
    assert read_alarms(stored_alarms(JobAlarms(most_open_runs=20))) == JobAlarms(most_open_runs=20)
