"""Open runs that are late or long, and jobs that succeed again: each told once."""

from collections.abc import Callable
from typing import Any

import pytest

from jobwheel.admin.domain.alarm import AlarmFailures, AlarmKind, JobAlarms, Notice
from jobwheel.admin.domain.ids import ChannelId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store import alarm_outbox, alarm_watch
from jobwheel.admin.store.alarm_states import read_states
from jobwheel.admin.store.job_alarms import delete_watch, read_alarms, stored_alarms, write_watch
from tests.support.alarms import outbox
from tests.support.store import NOW_MS, Store

NODE = NodeId(7)


async def watched(store: Store, **fields: Any) -> JobId:
    job_id = await store.job()
    await store.database.write(write_watch, job_id, JobAlarms(**fields))
    return job_id


async def ids(store: Store, look: Callable[..., list[Notice]], now_ms: int) -> list[int | None]:
    return [each.run_id for each in await store.database.read(look, now_ms, 100)]


async def test_a_run_that_is_not_accepted_in_time_is_late_until_it_is_told(store: Store) -> None:
    job_id = await watched(store, late_start_s=60)
    run_id = (await store.pending(NODE, job_id=job_id))[0].id
    assert await ids(store, alarm_watch.late_runs, NOW_MS + 60_000) == []
    (late,) = await store.database.read(alarm_watch.late_runs, NOW_MS + 60_001, 100)
    assert (late.kind, late.run_id, late.job_id, late.group_id) == (AlarmKind.LATE_START, run_id, job_id, 1)
    await store.database.write(alarm_watch.note_runs, [late], NOW_MS)
    assert await ids(store, alarm_watch.late_runs, NOW_MS + 90_000) == []
    assert [row["kind"] for row in await outbox(store.database)] == ["late_start"]


async def test_one_that_was_accepted_late_is_late_and_one_in_time_is_not(store: Store) -> None:
    job_id = await watched(store, late_start_s=60)
    late, in_time = [each.id for each in await store.pending(NODE, NOW_MS, NOW_MS, job_id=job_id)]
    await store.change_run(late, phase="accepted", accepted_ms=NOW_MS + 61_000)
    await store.change_run(in_time, phase="accepted", accepted_ms=NOW_MS + 1_000)
    assert await ids(store, alarm_watch.late_runs, NOW_MS + 3600_000) == [late]


async def test_a_run_under_way_for_too_long_is_long(store: Store) -> None:
    job_id = await watched(store, long_run_s=300)
    pending, accepted, done = [each.id for each in await store.pending(NODE, *[NOW_MS] * 3, job_id=job_id)]
    await store.change_run(accepted, phase="accepted", sent_ms=NOW_MS, accepted_ms=NOW_MS + 1000)
    await store.change_run(done, phase=None, outcome="succeeded", accepted_ms=NOW_MS)
    assert await ids(store, alarm_watch.long_runs, NOW_MS + 301_000) == []
    assert await ids(store, alarm_watch.long_runs, NOW_MS + 301_001) == [accepted]
    assert pending not in await ids(store, alarm_watch.long_runs, NOW_MS + 10**9)


async def test_other_jobs_are_not_looked_at(store: Store) -> None:
    await watched(store, late_start_s=1)
    other = await store.job()
    await store.pending(NODE, job_id=other)
    assert await ids(store, alarm_watch.late_runs, NOW_MS + 10**9) == []
    job_id = await watched(store, late_start_s=1)
    await store.pending(NODE, job_id=job_id)
    await store.database.write(delete_watch, job_id)
    assert await ids(store, alarm_watch.late_runs, NOW_MS + 10**9) == []


async def test_what_was_told_is_forgotten_when_the_run_has_ended(store: Store) -> None:
    job_id = await watched(store, late_start_s=1)
    run_id = (await store.pending(NODE, job_id=job_id))[0].id
    late = await store.database.read(alarm_watch.late_runs, NOW_MS + 5000, 10)
    await store.database.write(alarm_watch.note_runs, late, NOW_MS)
    assert await store.database.write(alarm_watch.forget_noted, NOW_MS + 1) == 0
    await store.change_run(run_id, phase=None, outcome="failed")
    assert await store.database.write(alarm_watch.forget_noted, NOW_MS) == 0
    assert await store.database.write(alarm_watch.forget_noted, NOW_MS + 1) == 1


class TestSuccessAfterFailure:
    async def failing(self, store: Store, *, asks: bool = True) -> tuple[JobId, RunId]:
        job_id = await store.job(alarm_settings=stored_alarms(JobAlarms(success_after_failure=asks)))
        run_id = (await store.pending(None, job_id=job_id))[0].id
        await store.change_run(run_id, phase=None, outcome="failed", ended_ms=NOW_MS)
        await store.database.write(alarm_watch.note_failing, {job_id: run_id})
        return job_id, run_id

    async def test_the_next_success_is_told_once(self, store: Store) -> None:
        job_id, _ = await self.failing(store)
        later = [each.id for each in await store.pending(None, NOW_MS, NOW_MS, job_id=job_id)]
        assert not await store.database.read(alarm_watch.has_recovered)
        await store.change_run(later[0], phase=None, outcome="killed", ended_ms=NOW_MS)
        await store.change_run(later[1], phase=None, outcome="succeeded", ended_ms=NOW_MS + 5)
        assert await store.database.read(alarm_watch.has_recovered)
        assert await store.database.write(alarm_watch.note_recovered) == 1
        (row,) = await outbox(store.database)
        assert (row["kind"], row["run_id"], row["due_ms"]) == ("recovered", later[1], NOW_MS + 5)
        assert await store.database.write(alarm_watch.note_recovered) == 0

    async def test_a_success_before_the_last_failure_does_not_count(self, store: Store) -> None:
        job_id, _ = await self.failing(store)
        success, failure = [each.id for each in await store.pending(None, NOW_MS, NOW_MS, job_id=job_id)]
        await store.change_run(success, phase=None, outcome="succeeded", ended_ms=NOW_MS)
        await store.database.write(alarm_watch.note_failing, {job_id: failure})
        # An older failure that is heard of later does not set it back.
        await store.database.write(alarm_watch.note_failing, {job_id: RunId(success - 1)})
        assert not await store.database.read(alarm_watch.has_recovered)

    async def test_a_job_that_does_not_ask_any_more_is_forgotten(self, store: Store) -> None:
        await self.failing(store, asks=False)
        assert await store.database.read(alarm_watch.has_recovered)
        assert await store.database.write(alarm_watch.note_recovered) == 0
        assert await store.database.read(read_states, "job", alarm_watch.Failing) == {}


@pytest.mark.parametrize(
    "alarms",
    [
        JobAlarms(),
        JobAlarms((ChannelId(3), ChannelId(1)), AlarmFailures.EVERY, (Outcome.KILLED,), True, 60, 3600),
        JobAlarms(failures=AlarmFailures.NONE),
    ],
)
def test_what_is_stored_is_read_again(alarms: JobAlarms) -> None:
    assert read_alarms(stored_alarms(alarms)) == alarms


@pytest.mark.parametrize("text", ["", None, "{", "[]", '{"failures": "SOMETIMES"}', '{"channels": ["a"]}'])
def test_nonsense_in_the_column_means_the_defaults(text: str | None) -> None:
    assert read_alarms(text) == JobAlarms()


async def test_one_lock_serves_all(store: Store) -> None:
    await store.database.write(alarm_outbox.hold_alarms)
    await store.database.write(alarm_outbox.hold_alarms)
