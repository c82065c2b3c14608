"""Schedules that other platforms stumble over, in processes: a great many jobs at once, and those that fire once."""

import asyncio
import json
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.ids import JobId
from tests.support.checker import judge
from tests.support.live_admin import seen
from tests.support.metrics import backlog, samples
from tests.support.recording_executor import INSTANCE
from tests.support.report import record_verdict
from tests.support.rounds import ROUNDS, rounds
from tests.support.scene import CLOCK, Scene, read_starts, record
from tests.support.single_node import EVERY_SECOND, Operator, beaten, every_second, new_scene, operator, rows, settled

JOBS = 1000
# Ten minutes in the long form of twenty rounds.
LOAD_S = 30 * ROUNDS or 5
SINGLE_SHOTS = rounds(5)
BURST = 5000


async def start_all(scene: Scene) -> list[JobId]:
    """A thousand per-second jobs, started at one moment."""
    async with operator(scene) as someone:
        jobs = await asyncio.gather(*(someone.job(**EVERY_SECOND) for _ in range(JOBS)))
        await asyncio.gather(*(someone.ask("POST", f"jobs/{job_id}/start") for job_id in jobs))
    return jobs


async def stop_all(scene: Scene, jobs: list[JobId]) -> None:
    async with operator(scene) as someone:
        await asyncio.gather(*(someone.ask("POST", f"jobs/{job_id}/stop") for job_id in jobs))


@pytest.mark.process
@pytest.mark.timeout(180 + 3 * LOAD_S)
async def test_of_a_thousand_per_second_jobs_no_instant_is_missing_or_double(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    async with scene.admin() as admin, scene.executor(INSTANCE) as executor:
        await beaten(scene)
        jobs = await start_all(scene)
        began_ms = CLOCK.now()
        await CLOCK.wait(LOAD_S)
        until_ms = CLOCK.now()
        if ROUNDS:
            await stop_all(scene, jobs)
        # A machine that is too slow for the load is late, and misses nothing: it gets as long again.
        await settled(scene, until_ms, 60 + LOAD_S)
        admin.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(admin.wait(), 20) == 0
        executor.send_signal(signal.SIGTERM)
        await executor.wait()
    missed = await rows(scene, "SELECT job_id, details FROM jobwheel_event WHERE kind = 'job.misfired'")
    misfires = [record(job_id, json.loads(details)) for job_id, details in missed]
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    starts = [start for start in starts if start.planned_ms > began_ms]
    verdict = judge(every_second(jobs, began_ms + 1, until_ms), starts, misfires)
    record_verdict("sqlite", f"{JOBS:,} per-second jobs", 1, verdict)
    assert verdict.good, verdict
    assert verdict.executed >= JOBS * (LOAD_S - 1)


@pytest.mark.process
@pytest.mark.timeout(60 + 8 * SINGLE_SHOTS)
async def test_a_cron_that_names_one_instant_fires_once_and_disturbs_nobody(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    async with scene.admin(), scene.executor(INSTANCE), operator(scene) as someone:
        await beaten(scene)
        steady = await someone.job(running=True, **EVERY_SECOND)
        began_ms = CLOCK.now()
        single: dict[JobId, int] = {}
        for _ in range(SINGLE_SHOTS):
            at_ms = (CLOCK.now() // 1000 + 3) * 1000
            conf = f"{datetime.fromtimestamp(at_ms // 1000, UTC):%S %M %H %d %m ? %Y}"
            fields: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": conf, "time_zone": "UTC"}
            single[await someone.job(running=True, **fields)] = at_ms
            await CLOCK.wait(0.3)
        await CLOCK.wait(4)
        until_ms = CLOCK.now()
        await settled(scene, until_ms)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    assert sorted((each.job_id, each.planned_ms) for each in starts if each.job_id in single) == sorted(single.items())
    statuses: dict[JobId, int] = dict(await rows(scene, "SELECT id, trigger_status FROM xxl_job_info"))
    assert statuses == {steady: 1, **dict.fromkeys(single, 0)}
    kinds = await rows(scene, "SELECT job_id, kind FROM jobwheel_event WHERE kind = 'job.finished'")
    assert sorted(job_id for job_id, _ in kinds) == sorted(single)
    wanted = [*every_second([steady], began_ms + 1, until_ms), *single.items()]
    verdict = judge(wanted, [each for each in starts if each.planned_ms > began_ms], [])
    record_verdict("sqlite", "a cron of one instant", SINGLE_SHOTS, verdict)
    assert verdict.good, verdict


async def start_burst(scene: Scene, at_ms: int) -> None:
    """Running jobs that are next due at the moment; over REST it would take a minute to make them."""
    await rows(
        scene,
        "INSERT INTO xxl_job_info (job_group, job_desc, schedule_type, schedule_conf, executor_route_strategy, "
        "executor_handler, executor_block_strategy, glue_type, trigger_status, anchor_ms, trigger_next_time) "
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1) "
        "SELECT 1, 'number ' || n, 'FIX_RATE', '3600', 'FIRST', 'settle', 'SERIAL_EXECUTION', 'BEAN', 1, "
        "?2 - 3600000, ?2 FROM numbers",
        BURST,
        at_ms,
    )


async def metrics_until_all_sent(someone: Operator, within_s: float) -> list[dict[str, float]]:
    """What `/metrics` says, again and again, until every run has been sent and nothing waits."""
    found: list[dict[str, float]] = []

    async def look() -> bool:
        found.append(samples(await someone.client.get("/metrics")))
        last = found[-1]
        return last["jobwheel_run_lateness_seconds_count"] >= BURST and not last["jobwheel_sends_in_flight"]

    await seen(look, within_s)
    return found


@pytest.mark.process
@pytest.mark.timeout(150)
async def test_of_five_thousand_jobs_of_one_instant_each_runs_once_and_the_backlog_shows(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    async with scene.admin(), scene.executor(INSTANCE), operator(scene) as someone:
        await beaten(scene)
        at_ms = (CLOCK.now() // 1000 + 5) * 1000
        await start_burst(scene, at_ms)
        found = await metrics_until_all_sent(someone, 60)
        await settled(scene, at_ms + 1)
        assert await rows(
            scene, "SELECT count(*), count(DISTINCT job_id), min(planned_ms), max(planned_ms) FROM xxl_job_log"
        ) == [(BURST, BURST, at_ms, at_ms)]
        jobs = [job_id for (job_id,) in await rows(scene, "SELECT id FROM xxl_job_info")]
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    verdict = judge([(job_id, at_ms) for job_id in jobs], starts, [])
    record_verdict("sqlite", f"{BURST:,} jobs of one instant", 1, verdict)
    assert verdict.good, verdict
    assert verdict.executed == BURST
    assert max(backlog(each) for each in found) >= BURST // 10
    assert max(each["jobwheel_parked_runs"] for each in found) > 0
    assert (backlog(found[-1]), found[-1]["jobwheel_run_lateness_seconds_count"]) == (0, BURST)
