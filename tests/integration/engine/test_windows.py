"""Pause windows, validity, ONCE just ahead and FIRE_ALL on a running admin."""

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.job import Job, PauseWindow
from jobwheel.admin.store.pause_windows import read_windows
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, seen, until
from tests.support.recording_executor import INSTANCE, RecordingExecutor

EVERY_SECOND: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
LATE_MS = 500


def planned(executor: RecordingExecutor, job: Job) -> list[int]:
    """The planned times of the job's starts."""
    return [run.body["scheduledTime"] for run in executor.runs() if run.body["jobId"] == job.id]


async def test_once_three_seconds_ahead_fires(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        at_ms = (CLOCK.now() // 1000 + 3) * 1000
        conf = f"{datetime.fromtimestamp(at_ms // 1000, UTC):%Y-%m-%dT%H:%M:%S}Z"
        job = await live.job(running=True, schedule_type="ONCE", schedule_conf=conf)
        assert job.next_ms == at_ms
        await until(lambda: len(executor.runs()) >= 1)
        assert planned(executor, job) == [at_ms]
        assert at_ms <= executor.runs()[0].at_ms < at_ms + LATE_MS
    assert await live.event_kinds(job) == ["job.created", "job.finished"]


@pytest.mark.timeout(30)
async def test_a_job_pauses_goes_on_and_ends(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        began_ms = CLOCK.now() // 1000 * 1000
        pause_ms, resume_ms, end_ms = (began_ms + 1000 * each for each in (3, 6, 8))
        job = await live.job(running=True, **EVERY_SECOND, valid_until_ms=end_ms)
        delay = await live.job(running=True, schedule_type="FIX_DELAY", schedule_conf="1")
        # What is planned by then for the time of the window is taken back.
        await seen(lambda: live.runs(job))
        windows = [PauseWindow(pause_ms, resume_ms, "a deployment")]
        for each in (job, delay):
            await live.admin.services.jobs.update(each.id, {"pause_windows": windows}, version=None, actor="test")
        await until(lambda: pause_ms - 1000 in planned(executor, job), 20)
        by_hand = await live.done(await live.trigger(job))
        await until(lambda: resume_ms in planned(executor, delay) and end_ms - 1000 in planned(executor, job), 20)
    assert by_hand.planned_ms is not None
    started = [each for each in planned(executor, job) if each != by_hand.planned_ms]
    assert started == [*range(started[0], pause_ms, 1000), *range(resume_ms, end_ms, 1000)]
    assert [each for each in planned(executor, delay) if pause_ms <= each < resume_ms] == []
    kinds = await live.event_kinds(job)
    assert {"run.removed", "job.finished"} <= set(kinds)
    assert "job.misfired" not in kinds
    await live.admin.services.jobs.delete(job.id, actor="test")
    assert await live.admin.database.read(read_windows, [job.id]) == {}


async def test_fire_all_makes_up_for_the_newest_missed_instants(prepared: Path, tmp_path: Path) -> None:
    shutil.copytree(prepared, tmp_path / "data")
    async with live_admin(tmp_path / "data", misfire_most=20) as live, live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(**EVERY_SECOND, misfire_strategy="FIRE_ALL")
        first_ms = CLOCK.now() // 1000 * 1000 - 40_000
        # As an admin finds it that was down for forty seconds.
        await live.change_job(job.id, trigger_status=1, trigger_next_time=first_ms)
        await until(lambda: len(planned(executor, job)) >= 27)
        await live.admin.services.jobs.stop(job.id, actor="test")
        made_up = [run.planned_ms or 0 for run in await live.runs(job) if run.trigger_type == "MISFIRE"]
        events = await live.admin.services.jobs.events(job.id, None, 100)
    last_ms = made_up[-1]
    assert made_up == list(range(last_ms - 19_000, last_ms + 1, 1000))
    started = sorted(planned(executor, job))
    assert started == list(range(made_up[0], made_up[0] + 1000 * len(started), 1000))
    (details,) = [each.details for each in events if each.kind == "job.misfired"]
    assert (details["count"], details["runs"]) == ((last_ms - first_ms) // 1000 + 1, 20)
