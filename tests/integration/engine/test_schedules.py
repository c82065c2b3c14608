"""Every kind of schedule fires on time, and stop, edit and delete take effect at once."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import update

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.tables import job_info
from tests.support.live_admin import CLOCK, LiveAdmin, seen, until
from tests.support.recording_executor import INSTANCE, RecordingExecutor

# Several seconds of a schedule, on a machine that may be busy.
pytestmark = pytest.mark.timeout(30)

EVERY_SECOND: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
LATE_MS = 500


def starts(executor: RecordingExecutor, job: Job) -> list[tuple[int, int]]:
    """(planned, begun) of each start of the job."""
    return [(run.body["scheduledTime"], run.at_ms) for run in executor.runs() if run.body["jobId"] == job.id]


async def test_all_kinds_of_schedules_fire_on_time(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        began_ms = CLOCK.now()
        cron = await live.job(running=True, **EVERY_SECOND)
        made_ms = CLOCK.now()
        rate = await live.job(running=True, schedule_type="FIX_RATE", schedule_conf="2")
        delay = await live.job(running=True, schedule_type="FIX_DELAY", schedule_conf="1")
        soon = datetime.fromtimestamp(CLOCK.now() // 1000, UTC) + timedelta(seconds=2)
        once = await live.job(running=True, **_once(soon))
        await until(lambda: all(starts(executor, job) for job in (rate, once)))
        await until(lambda: len(starts(executor, cron)) >= 4 and len(starts(executor, delay)) >= 3)
    for job in (cron, rate, delay, once):
        for planned_ms, at_ms in starts(executor, job):
            assert planned_ms <= at_ms < planned_ms + LATE_MS
    planned = [planned_ms for planned_ms, _ in starts(executor, cron)]
    assert planned == list(range(planned[0], planned[0] + len(planned) * 1000, 1000))
    assert began_ms < planned[0] <= made_ms + 1000
    anchor_ms = rate.settings.anchor_ms
    assert anchor_ms is not None
    assert starts(executor, rate)[0][0] - anchor_ms == 2000
    assert [planned_ms for planned_ms, _ in starts(executor, once)] == [int(soon.timestamp() * 1000)]
    assert (await live.admin.services.jobs.get(once.id)).running is False
    assert await live.event_kinds(once) == ["job.created", "job.finished"]


async def test_fix_delay_counts_from_the_end_and_waits_while_a_run_is_open(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE, reports=False) as executor:
        await executor.register()
        job = await live.job(running=True, schedule_type="FIX_DELAY", schedule_conf="1")
        await until(lambda: len(executor.runs()) == 1)
        # Longer than the interval: as long as it runs, nothing is planned.
        await CLOCK.wait(1.3)
        assert len(executor.runs()) == 1
        before_ms = CLOCK.now()
        await executor.report(executor.runs()[0].log_id)
        after_ms = CLOCK.now()
        await until(lambda: len(executor.runs()) == 2)
        planned_ms = starts(executor, job)[1][0]
        assert before_ms + 1000 <= planned_ms <= after_ms + 1000


async def test_a_job_that_waits_for_an_end_that_nobody_saw_goes_on(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, schedule_type="FIX_DELAY", schedule_conf="3600")
        await live.change_job(job.id, trigger_next_time=AWAITING_SETTLEMENT_MS)
        assert await seen_next_time(live, job) < CLOCK.now() + 3_600_000


async def seen_next_time(live: LiveAdmin, job: Job) -> int:
    """The job's next time, once there is one."""

    async def look() -> int | None:
        next_ms = (await live.admin.services.jobs.get(job.id)).next_ms
        return None if next_ms == AWAITING_SETTLEMENT_MS else next_ms

    return await seen(look)


async def test_after_a_stop_has_returned_nothing_starts(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        jobs = [await live.job(running=True, **EVERY_SECOND) for _ in range(10)]
        await until(lambda: all(starts(executor, job) for job in jobs))
        stopped_ms = {}
        for job in jobs:
            await live.admin.services.jobs.stop(job.id, actor="test")
            stopped_ms[job.id] = CLOCK.now()
        await CLOCK.wait(1.2)
        for job in jobs:
            assert all(planned_ms <= stopped_ms[job.id] for planned_ms, _ in starts(executor, job))
            for run in await live.runs(job):
                await live.done(run.id)
            assert (await live.admin.services.jobs.get(job.id)).running is False


async def test_an_edit_takes_effect_with_the_next_run(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, parameter="old", **EVERY_SECOND)
        await until(lambda: len(executor.runs()) >= 1)
        asked_ms = CLOCK.now()
        await live.admin.services.jobs.update(job.id, {"parameter": "new"}, version=None, actor="test")
        edited_ms = CLOCK.now()
        await until(lambda: executor.runs()[-1].body["scheduledTime"] > edited_ms)
        for run in executor.runs():
            # What came due while the edit was made may have either.
            if not asked_ms < run.body["scheduledTime"] <= edited_ms:
                assert (run.body["executorParams"] == "new") == (run.body["scheduledTime"] > edited_ms)
        planned = [planned_ms for planned_ms, _ in starts(executor, job)]
        assert planned == list(range(planned[0], planned[0] + len(planned) * 1000, 1000))


async def test_a_deleted_job_starts_no_more_and_its_results_are_acknowledged(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE, reports=False) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(executor.runs()) >= 1)
        await live.admin.services.jobs.delete(job.id, actor="test")
        deleted_ms = CLOCK.now()
        await CLOCK.wait(1.2)
        assert all(planned_ms <= deleted_ms for planned_ms, _ in starts(executor, job))
        assert (await executor.report(executor.runs()[0].log_id))["code"] == 200


def _once(at: datetime) -> dict[str, str]:
    return {"schedule_type": "ONCE", "schedule_conf": f"{at:%Y-%m-%dT%H:%M:%S}Z"}


async def test_a_burst_of_one_instant_starts_every_run_once(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        later = datetime.fromtimestamp(CLOCK.now() // 1000, UTC) + timedelta(days=1)
        jobs = [await live.job(running=True, **_once(later)) for _ in range(100)]
        # All by one write: to make a hundred jobs may take longer than the instant is away.
        soon = datetime.fromtimestamp(CLOCK.now() // 1000, UTC) + timedelta(seconds=2)
        moved = update(job_info).values(**_once(soon), trigger_next_time=int(soon.timestamp() * 1000))
        await live.admin.database.write(lambda c: c.execute(moved))
        await until(lambda: len(executor.runs()) >= 100)
        assert sorted(run.body["jobId"] for run in executor.runs()) == sorted(job.id for job in jobs)
        assert all(planned_ms <= at_ms for job in jobs for planned_ms, at_ms in starts(executor, job))


async def test_a_corrupt_row_stops_alone(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        good = await live.job(running=True, **EVERY_SECOND)
        bad = [await live.job(**EVERY_SECOND) for _ in range(3)]
        now_ms = CLOCK.now()
        columns: list[dict[str, object]] = [
            {"schedule_conf": "not a cron"},
            {"misfire_strategy": "PERHAPS", "trigger_next_time": now_ms - 60_000},
            {"trigger_next_time": -(2**60)},
        ]
        for job, corrupt in zip(bad, columns, strict=True):
            await live.change_job(job.id, **{"trigger_status": 1, "trigger_next_time": now_ms, **corrupt})
        for job in bad:
            kinds = await seen(lambda job=job: _corrupt(live, job))  # type: ignore[misc]
            assert kinds.count("job.corrupt") == 1
        count = len(starts(executor, good))
        await until(lambda: len(starts(executor, good)) >= count + 2)
        planned = [planned_ms for planned_ms, _ in starts(executor, good)]
        assert planned == list(range(planned[0], planned[0] + len(planned) * 1000, 1000))
        assert [starts(executor, job) for job in bad] == [[], [], []]


async def _corrupt(live: LiveAdmin, job: Job) -> list[str] | None:
    kinds = await live.event_kinds(job)
    return kinds if "job.corrupt" in kinds else None


async def test_a_route_that_nobody_knows_fails_that_jobs_runs_alone(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        bad, good = await live.job(), await live.job()
        await live.change_job(bad.id, executor_route_strategy="NONSENSE")
        failed, succeeded = [await live.done(await live.trigger(job)) for job in (bad, good)]
        assert (failed.outcome, failed.trigger_code) == (Outcome.FAILED, 500)
        assert "'NONSENSE' is not one of FIRST" in (failed.trigger_message or "")
        assert succeeded.outcome is Outcome.SUCCEEDED


async def test_jobs_that_were_due_while_the_claim_could_not_read_fire_or_are_misfires(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(starts(executor, job)) >= 1)
        await live.admin.database.write(lambda c: c.exec_driver_sql(f"ALTER TABLE {job_info.name} RENAME TO away"))
        await asyncio.wait_for(_failing(live), 8)
        await live.admin.database.write(lambda c: c.exec_driver_sql(f"ALTER TABLE away RENAME TO {job_info.name}"))
        count = len(starts(executor, job))
        await until(lambda: len(starts(executor, job)) >= count + 2)
        planned = [planned_ms for planned_ms, _ in starts(executor, job)]
        assert planned == list(range(planned[0], planned[0] + len(planned) * 1000, 1000))
        await seen(lambda: _healthy(live))


async def _failing(live: LiveAdmin) -> None:
    while not live.admin.engine.reasons():
        await CLOCK.wait(0.01)


async def _healthy(live: LiveAdmin) -> bool:
    return not live.admin.engine.reasons()
