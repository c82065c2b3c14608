"""Executors are killed in mid-run and started again: what they had is settled or says why, and nothing runs twice."""

import asyncio
import json
import random
import secrets
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import JobId
from tests.support.checker import judge
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live_admin import seen
from tests.support.report import record_verdict
from tests.support.rounds import rounds
from tests.support.scene import CLOCK, Scene, read_admin, read_starts, scheduled
from tests.support.single_node import (
    EVERY_SECOND,
    Operator,
    beaten,
    done,
    every_second,
    judge_runs,
    new_scene,
    operator,
    rows,
    rows_when,
    settled,
    working_executor,
)

KILLS = rounds(4)
RESTARTS = rounds(1)
BOTH_KILLED = rounds(1)
STARTED = "SELECT 1 FROM xxl_job_log WHERE phase = 'accepted' AND planned_ms > ? LIMIT 1"


def ended(scene: Scene) -> set[int]:
    """The runs whose work came to its end."""
    path = scene.starts_path.with_name(f"{scene.starts_path.name}.ends")
    return {json.loads(line)["log"] for line in path.read_text().splitlines()} if path.exists() else set()


async def kill_again_and_again(scene: Scene, source: random.Random) -> None:
    for _ in range(KILLS):
        async with working_executor(scene) as executor:
            await rows_when(scene, STARTED, CLOCK.now())
            await CLOCK.wait(source.uniform(0.1, 2.0))
            executor.kill()
            await executor.wait()
        await CLOCK.wait(source.choice([0, 0.3, 1.5]))


async def go_on(scene: Scene) -> int:
    """Start an executor that lives until everything that can be settled is; returns when the load ended."""
    async with working_executor(scene) as executor:
        await rows_when(scene, STARTED, CLOCK.now())
        await CLOCK.wait(2)
        until_ms = CLOCK.now()
        await settled(scene, until_ms)
        # What this process accepted ends by itself; what stays open was held by one that was killed.
        await CLOCK.wait(2)
        executor.send_signal(signal.SIGTERM)
        await asyncio.wait_for(executor.wait(), 15)
    return until_ms


@pytest.mark.process
@pytest.mark.timeout(150 + 10 * KILLS)
async def test_an_executor_killed_in_mid_run_leaves_nothing_silent_and_nothing_double(tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    scene = await new_scene(tmp_path)
    async with scene.admin() as admin:
        async with operator(scene) as someone:
            jobs = await someone.jobs(5, running=True, parameter="0.4", **EVERY_SECOND)
        began_ms = CLOCK.now()
        await kill_again_and_again(scene, random.Random(seed))
        killed_ms = CLOCK.now()
        until_ms = await go_on(scene)
        admin.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(admin.wait(), 10) == 0
    await judge_kills(scene, jobs, (began_ms, killed_ms, until_ms), seed)


async def judge_kills(scene: Scene, jobs: list[JobId], moments: tuple[int, int, int], seed: int) -> None:
    began_ms, killed_ms, until_ms = moments
    misfires, runs = await read_admin(scene, jobs)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    times = Counter(start.log_id for start in starts)
    runs = [run for run in runs if began_ms <= (run.planned_ms or 0) < until_ms]
    unsent = [run for run in runs if run.outcome in ("failed", "lost")]
    held = [run for run in runs if run.phase == "accepted"]
    # Every run has an end that says why, or was held by a process that was killed (and is for the rule of lost runs).
    assert {run.phase for run in runs} <= {None, "accepted"}, f"seed {seed}"
    assert all(run.trigger_message for run in unsent), f"seed {seed}"
    assert [run.id for run in unsent if times[run.id]] == [], f"seed {seed}: failed, and yet executed"
    assert [run.id for run in held if (run.planned_ms or 0) > killed_ms] == [], f"seed {seed}: of no killed process"
    over = await asyncio.to_thread(ended, scene)
    succeeded = [run.id for run in runs if run.outcome == "succeeded"]
    assert [run_id for run_id in succeeded if run_id not in over or times[run_id] != 1] == [], f"seed {seed}"
    planned = every_second(jobs, began_ms, until_ms)
    verdict = judge(planned, starts, misfires, scheduled(unsent), scheduled(runs), scheduled(held))
    record_verdict("sqlite", "executor killed in mid-run", KILLS, verdict)
    assert verdict.good, f"seed {seed}: {verdict}"
    assert verdict.executed > len(jobs) * 5
    # A job's queue and the run under way, and what was on the wire at the kill.
    assert len(held) <= KILLS * len(jobs) * 3, f"seed {seed}: {len(held)} held"


async def send(someone: Operator, proxy: CuttingProxy, jobs: Iterable[JobId], *, arrives: bool) -> set[int]:
    """Trigger each job once; the answers never come, and the requests arrive or not."""
    cuts = proxy.cuts
    proxy.swallows = not arrives
    proxy.armed = proxy.stays_armed = True
    run_ids = {await someone.trigger(job_id) for job_id in jobs}
    async with asyncio.timeout(8):
        while proxy.cuts < cuts + len(run_ids):
            await CLOCK.wait(0.02)
    proxy.armed = proxy.stays_armed = False
    return run_ids


async def work_unheard(scene: Scene, jobs: list[JobId]) -> set[int]:
    """Runs whose admin is killed before they end, and their executor afterwards; returns their ids."""
    async with working_executor(scene) as executor:
        async with scene.admin() as admin, operator(scene) as someone:
            jobs += await someone.jobs(0 if jobs else 10, parameter="1.5")
            await beaten(scene)
            run_ids = {await someone.trigger(job_id) for job_id in jobs}
            await rows_when(scene, "SELECT count(*) FROM xxl_job_log WHERE phase = 'accepted' HAVING count(*) = 10")
            admin.kill()
            await admin.wait()

        async def all_ended() -> bool:
            await CLOCK.wait(0.05)
            return run_ids <= await asyncio.to_thread(ended, scene)

        await seen(all_ended, 10)
        # From the work's end to the spool is a matter of milliseconds; a kill in them leaves a run for the lost rule.
        await CLOCK.wait(0.5)
        executor.kill()
        await executor.wait()
    return run_ids


@pytest.mark.process
@pytest.mark.timeout(60 + 30 * BOTH_KILLED)
async def test_results_outlive_the_kill_of_the_admin_and_of_the_executor(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    jobs: list[JobId] = []
    for _ in range(BOTH_KILLED):
        run_ids = await work_unheard(scene, jobs)
        async with scene.admin(), working_executor(scene):
            await done(scene, run_ids)
    outcomes = await rows(scene, "SELECT outcome, count(*) FROM xxl_job_log GROUP BY outcome")
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    verdict = await judge_runs(scene, [(start.log_id, start.at_ms) for start in starts])
    record_verdict("sqlite", "admin and executor killed", BOTH_KILLED, verdict)
    assert verdict.good, verdict
    assert outcomes == [("succeeded", 10 * BOTH_KILLED)]


UNCONFIRMED = "SELECT count(*) FROM xxl_job_log WHERE phase = 'unconfirmed' HAVING count(*) = ?"


@pytest.mark.process
@pytest.mark.timeout(60 + 40 * RESTARTS)
async def test_another_process_at_the_address_runs_nothing_that_was_sent_to_the_first(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    proxy = CuttingProxy(scene.executor_port, b"/run")
    never: set[int] = set()
    taken: set[int] = set()
    async with proxy.running() as port, scene.admin(), operator(scene) as someone:
        address = f"http://127.0.0.1:{port}/"
        jobs = await someone.jobs(6, parameter="60")
        for _ in range(RESTARTS):
            async with working_executor(scene, address) as executor:
                await beaten(scene)
                never_now = await send(someone, proxy, jobs[:3], arrives=False)
                taken_now = await send(someone, proxy, jobs[3:], arrives=True)
                await rows_when(scene, UNCONFIRMED, 6)
                executor.kill()
                await executor.wait()
            async with working_executor(scene, address) as executor:
                # Sent again ten seconds after the failure, to whoever is there by then.
                await settled(scene, CLOCK.now())
                executor.kill()
                await executor.wait()
            never, taken = never | never_now, taken | taken_now
        what: dict[int, str] = dict(
            await rows(scene, "SELECT id, coalesce(phase, outcome) || ': ' || trigger_msg FROM xxl_job_log")
        )
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    verdict = await judge_runs(scene, [(start.log_id, start.at_ms) for start in starts])
    record_verdict("sqlite", "executor restarted before the resend", RESTARTS, verdict)
    assert verdict.good, verdict
    for run_id in never:
        assert what[run_id].startswith("lost: "), what[run_id]
        assert "another process answers at this address now" in what[run_id]
    for run_id in taken:
        # The later process knows it by the file of its log. It is nobody's any more: the rule of lost runs ends it.
        assert what[run_id].startswith("accepted: "), what[run_id]
        assert "sent again" in what[run_id]
    assert {start.log_id for start in starts} == taken
