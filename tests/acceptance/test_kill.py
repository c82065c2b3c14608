"""The admin is killed at random moments under per-second jobs: no planned instant is lost and none is run twice."""

import asyncio
import random
import secrets
import signal
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import Outcome, Phase, Run
from tests.support.checker import judge
from tests.support.http_peer import unused_port
from tests.support.recording_executor import INSTANCE
from tests.support.report import record_verdict
from tests.support.rounds import rounds
from tests.support.scene import CLOCK, Scene, make_jobs, read_admin, read_starts, scheduled

JOBS = 20
# (seconds that it runs, seconds that it is away): the first kills; those beyond are left to chance.
FIRST = ((2.0, 0.0), (0.7, 0.3), (0.3, 0.1), (1.1, 0.8))
KILLS = rounds(len(FIRST))
# What is claimed at the kill reaches 5 s ahead, and a misfire is more than 5 s late: only a longer absence makes some.
LONG_AWAY = (0.5, 11.5)


def draw_kills(source: random.Random, *, long_away: bool) -> list[tuple[float, float]]:
    more = [(source.uniform(0, 5), source.choice([0, 0.5, 3, 8, 13])) for _ in range(KILLS - len(FIRST))]
    return [*FIRST[:KILLS], *more, *([LONG_AWAY] if long_away else [])]


async def kill_again_and_again(scene: Scene, source: random.Random, kills: list[tuple[float, float]]) -> None:
    for runs_s, away_s in kills:
        async with scene.admin() as admin:
            await CLOCK.wait(runs_s + source.uniform(0, 0.5))
            admin.kill()
        await CLOCK.wait(away_s)


@pytest.mark.process
@pytest.mark.timeout(120 + 20 * KILLS)
async def test_every_instant_is_one_execution_or_a_recorded_misfire(tmp_path: Path) -> None:
    """With an executor of ours and one of another make, both at once: most of it is waiting."""
    async with asyncio.TaskGroup() as group:
        for instance in (INSTANCE, None):
            folder = tmp_path / ("others" if instance is None else "ours")
            scene = Scene(folder / "data", secrets.token_urlsafe(16), unused_port(), unused_port())
            # One after the other: Alembic cannot make two schemas in one process at once.
            jobs = await make_jobs(scene, JOBS)
            group.create_task(survive(scene, jobs, instance))


async def survive(scene: Scene, jobs: list[JobId], instance: str | None) -> None:
    """Kill the admin again and again; every instant is an execution, a misfire, or excused."""
    seed = secrets.randbelow(2**32)
    source = random.Random(seed)
    kills = draw_kills(source, long_away=instance is not None)
    began_ms = CLOCK.now()
    async with scene.executor(instance) as executor:
        await kill_again_and_again(scene, source, kills)
        async with scene.admin() as admin:
            await CLOCK.wait(3.5)
            stopped_ms = CLOCK.now()
            admin.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(admin.wait(), 8) == 0
        executor.send_signal(signal.SIGTERM)
        await asyncio.wait_for(executor.wait(), 8)
    misfires, runs = await read_admin(scene, jobs)
    first_ms = began_ms - began_ms % 1000 + 1000
    planned = [(job_id, at) for job_id in jobs for at in range(first_ms, stopped_ms - 2000, 1000)]
    # A run without a live address (before the first beat) failed and says so; one that was being sent when the admin
    # was killed may have arrived: an executor of ours is sent it again, another make is only asked, a minute later, and
    # the run is lost, and says so, if it does not have it.
    excused = scheduled(run for run in runs if _without_address(run) or (instance is None and _lost(run)))
    unsure = scheduled(run for run in runs if instance is None and run.phase is Phase.UNCONFIRMED)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    verdict = judge(planned, starts, misfires, excused, scheduled(runs), unsure)
    name = "admin killed" if instance else "admin killed, executor of another make"
    record_verdict("sqlite", name, len(kills), verdict)
    assert verdict.good, f"seed {seed}, instance {instance}: {verdict}"
    assert verdict.executed > JOBS * 5
    assert verdict.misfired > 0 or instance is None
    assert verdict.failed + verdict.open < verdict.planned / 4


def _without_address(run: Run) -> bool:
    return run.outcome is Outcome.FAILED and "no live address" in (run.trigger_message or "")


def _lost(run: Run) -> bool:
    return run.outcome is Outcome.LOST and bool(run.trigger_message or run.handle_message)
