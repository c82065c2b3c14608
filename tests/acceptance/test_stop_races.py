"""Jobs are stopped, started and edited at random moments: a stop holds, and of two edits neither is lost."""

import asyncio
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import JobId
from tests.support.checker import judge
from tests.support.recording_executor import INSTANCE
from tests.support.report import record_verdict
from tests.support.rounds import rounds
from tests.support.scene import CLOCK, read_admin, read_starts
from tests.support.single_node import (
    EVERY_SECOND,
    Operator,
    beaten,
    every_second,
    new_scene,
    operator,
    settled,
)

JOBS = 20
# Stops of each job: 200 in all in the short form.
STOPS = rounds(10)
EDITS = rounds(10)
STATUS = {"start": "running", "stop": "stopped"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """A job ran from a start to a stop: the moments when each was asked for and when each was answered."""

    job_id: JobId
    start_asked_ms: int
    start_answered_ms: int
    stop_asked_ms: int
    stop_answered_ms: int

    def sure(self) -> list[tuple[int, int]]:
        """The instants that it had to run at."""
        return every_second([self.job_id], self.start_answered_ms + 1, self.stop_asked_ms + 1)

    def possible(self) -> list[tuple[int, int]]:
        """The instants that it may have run at."""
        return every_second([self.job_id], self.start_asked_ms, self.stop_answered_ms + 1)


async def start_and_stop(someone: Operator, job_id: JobId, source: random.Random) -> list[Stretch]:
    stretches = []
    for _ in range(STOPS):
        start_asked_ms = CLOCK.now()
        assert (await someone.ask("POST", f"jobs/{job_id}/start"))["status"] == "running"
        start_answered_ms = CLOCK.now()
        await CLOCK.wait(source.uniform(0, 1.6))
        stop_asked_ms = CLOCK.now()
        assert (await someone.ask("POST", f"jobs/{job_id}/stop"))["status"] == "stopped"
        stop_answered_ms = CLOCK.now()
        stretches.append(Stretch(job_id, start_asked_ms, start_answered_ms, stop_asked_ms, stop_answered_ms))
        await CLOCK.wait(source.uniform(0, 0.4))
        assert (await someone.ask("GET", f"jobs/{job_id}"))["status"] == "stopped"
    return stretches


@pytest.mark.process
@pytest.mark.timeout(60 + 6 * STOPS)
async def test_a_stop_at_any_moment_holds(tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    source = random.Random(seed)
    scene = await new_scene(tmp_path)
    async with scene.admin(), scene.executor(INSTANCE), operator(scene) as someone:
        await beaten(scene)
        jobs = await someone.jobs(JOBS, **EVERY_SECOND)
        everything = await asyncio.gather(*(start_and_stop(someone, job_id, source) for job_id in jobs))
        # Whatever was planned for later, or written back as running, would show by now.
        await CLOCK.wait(2)
        await settled(scene, CLOCK.now())
        running = (await someone.ask("GET", "jobs?status=running"))["items"]
    assert running == []
    stretches = [each for of_job in everything for each in of_job]
    misfires, _ = await read_admin(scene, jobs)
    sure = {each for stretch in stretches for each in stretch.sure()}
    possible = {each for stretch in stretches for each in stretch.possible()}
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    executed = {(start.job_id, start.planned_ms) for start in starts}
    verdict = judge(sure | (possible & executed), starts, misfires)
    record_verdict("sqlite", "stopped at any moment", len(stretches), verdict)
    assert verdict.good, f"seed {seed}: {verdict}"
    assert executed <= possible
    assert len(stretches) == JOBS * STOPS
    assert verdict.executed > len(stretches) / 4


async def edit_at_once(someone: Operator, job_id: JobId, values: Sequence[str]) -> None:
    """Two people change a field each, and a third stops or starts the job, all at the same time."""
    what = "stop" if values[0].endswith("0") else "start"
    await asyncio.gather(
        someone.ask("PATCH", f"jobs/{job_id}", name=values[0]),
        someone.ask("PATCH", f"jobs/{job_id}", parameter=values[1]),
        someone.ask("POST", f"jobs/{job_id}/{what}"),
    )
    job = await someone.ask("GET", f"jobs/{job_id}")
    assert (job["name"], job["parameter"], job["status"]) == (*values, STATUS[what])


@pytest.mark.process
@pytest.mark.timeout(60 + 5 * EDITS)
async def test_of_edits_at_the_same_time_none_is_lost(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    async with scene.admin(), operator(scene) as someone:
        jobs = await someone.jobs(JOBS, **EVERY_SECOND)
        for each in range(EDITS):
            values = [f"name {each}", f"parameter {each}"]
            await asyncio.gather(*(edit_at_once(someone, job_id, values) for job_id in jobs))
