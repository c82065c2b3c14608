"""Somebody sets the host's clock: instants passed over are misfires, none is planned again, and nothing stalls."""

import shutil
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome
from tests.support.checker import MisfireRecord, Start, judge
from tests.support.live_admin import LiveAdmin, live_admin, seen, until
from tests.support.recording_executor import INSTANCE, RecordingExecutor
from tests.support.report import record_verdict
from tests.support.scene import record
from tests.support.stepped_clock import SteppedClock

EVERY_SECOND: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
HOUR_MS = 3_600_000
# Nothing may stall for longer.
SOON_S = 10.0


@pytest.fixture
async def clock() -> SteppedClock:
    return SteppedClock()


@pytest.fixture
async def live(tmp_path: Path, prepared: Path, clock: SteppedClock) -> AsyncIterator[LiveAdmin]:
    shutil.copytree(prepared, tmp_path / "data")
    async with live_admin(tmp_path / "data", clock=clock) as started:
        yield started


def planned(executor: RecordingExecutor, job: Job) -> list[int]:
    """The planned times of the job's starts."""
    return [run.body["scheduledTime"] for run in executor.runs() if run.body["jobId"] == job.id]


async def misfires(live: LiveAdmin, job: Job) -> list[MisfireRecord]:
    events = await live.admin.services.jobs.events(job.id, None, 100)
    return [record(job.id, dict(each.details)) for each in events if each.kind == "job.misfired"]


async def runs_at_once(live: LiveAdmin) -> None:
    """A run by hand, and a job that is made now, are executed soon."""
    run = await live.run_when(await live.trigger(await live.job()), lambda run: run.phase is None, SOON_S)
    assert run.outcome is Outcome.SUCCEEDED


@pytest.mark.timeout(40)
async def test_a_step_forward_makes_misfires_of_what_it_passes_over(live: LiveAdmin, clock: SteppedClock) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(planned(executor, job)) >= 2)
        before_ms = clock.now()
        clock.step(HOUR_MS)
        after_ms = clock.now()
        await until(lambda: max(planned(executor, job)) > after_ms + 1000, SOON_S)
        await runs_at_once(live)
        await live.admin.services.jobs.stop(job.id, actor="test")
        missed = await misfires(live, job)
        instants = planned(executor, job)
        mine = [run for run in executor.runs() if run.body["jobId"] == job.id]
        assert live.admin.engine.reasons() == []
    wanted = [(job.id, instant) for instant in range(min(instants), max(instants) + 1, 1000)]
    # The executor's clock was not set: what it says of when a run began is an hour behind from the step on.
    starts = [Start(job.id, run.log_id, run.body["scheduledTime"], run.body["scheduledTime"]) for run in mine]
    verdict = judge(wanted, starts, missed)
    record_verdict("sqlite", "clock set forward by an hour", 1, verdict)
    assert verdict.good, verdict
    # What was planned for the next five seconds, and what was less than five seconds ago after the step, runs.
    assert HOUR_MS / 1000 - 12 < verdict.misfired <= HOUR_MS / 1000
    assert before_ms < missed[0].first_ms <= before_ms + 7000
    assert len(missed) == 1


@pytest.mark.timeout(40)
async def test_a_step_back_plans_nothing_again_and_stalls_nothing(live: LiveAdmin, clock: SteppedClock) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(planned(executor, job)) >= 2)
        next_ms = (await live.admin.services.jobs.get(job.id)).next_ms
        passes = live.admin.engine.claims.passes
        clock.step(-HOUR_MS)
        await runs_at_once(live)
        # A job that is started by the new time goes by it.
        other = await live.job(running=True, **EVERY_SECOND)
        await until(lambda: len(planned(executor, other)) >= 2, SOON_S)
        await until(lambda: live.admin.engine.claims.passes >= passes + 3, SOON_S)
        assert max(Counter(planned(executor, job)).values()) == 1
        # What has been planned stays so: the job goes on when the clock comes to its next time again.
        assert (await live.admin.services.jobs.get(job.id)).next_ms == next_ms
        assert await misfires(live, job) == []
        assert live.admin.engine.reasons() == []
        clock.step(HOUR_MS)
        await until(lambda: len(planned(executor, job)) >= 8, SOON_S)
        instants = sorted(planned(executor, job))
        assert instants == list(range(instants[0], instants[0] + 1000 * len(instants), 1000))


@pytest.mark.timeout(40)
async def test_forward_and_back_fires_no_instant_twice(live: LiveAdmin, clock: SteppedClock) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        job = await live.job(running=True, **EVERY_SECOND)
        rate = await live.job(running=True, schedule_type="FIX_RATE", schedule_conf="1")
        await until(lambda: len(planned(executor, job)) >= 2)
        clock.step(HOUR_MS)
        await seen(lambda: misfires(live, job), SOON_S)
        clock.step(-HOUR_MS)
        await runs_at_once(live)
        # An edit of the schedule plans by the new time, after everything that has a run.
        await live.admin.services.jobs.update(rate.id, {"schedule_conf": "2"}, version=None, actor="test")
        for each in (job, rate):
            assert max(Counter(planned(executor, each)).values()) == 1
        assert len(await misfires(live, job)) == 1
        assert live.admin.engine.reasons() == []
