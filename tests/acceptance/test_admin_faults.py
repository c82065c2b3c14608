"""An admin on SQLite is stopped with work in its hands, and its database refuses or waits: each run is made once."""

import asyncio
import contextlib
import os
import random
import secrets
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.ids import JobId
from tests.support.checker import judge
from tests.support.live_admin import seen
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept
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
)

STOPS = rounds(1)
QUEUED = 500
JOBS = 10
# How long writes fail at random.
TROUBLE_S = rounds(2)
# One row in so many fails the whole statement that changes it.
ONE_IN = 12
# Ten rows a second, of which chance spares all with odds of 1 to 10 to the 11th.
MET_WITHIN_S = 30
DELAYS = rounds(1)
WRITER_KILLS = rounds(3)


class BusyExecutor(RecordingExecutor):
    """Answers while it is free, and else lets everybody wait."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(f"http://127.0.0.1:{scene.admin_port}", scene.token, _when_free, instance=INSTANCE)
        self.free = asyncio.Event()
        self.executions: list[tuple[int, int]] = []
        self.on_start = lambda asked: self.executions.append((asked.log_id, asked.at_ms))

    def first_sends(self) -> list[int]:
        """The runs that were sent as new ones, in the order of arrival."""
        return [asked.log_id for asked in self.runs() if "resend" not in asked.body]


async def _when_free(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
    assert isinstance(executor, BusyExecutor)
    await executor.free.wait()
    return await accept(executor, asked)


async def _trigger(someone: Operator, job_id: JobId, count: int) -> list[int]:
    return [await someone.trigger(job_id) for _ in range(count)]


async def queue_and_stop(scene: Scene) -> list[int]:
    """Trigger runs faster than they can be sent, then stop the admin; returns what was answered with a run's id."""
    async with scene.admin() as admin:
        async with operator(scene) as someone:
            jobs = await someone.jobs(10)
            by_job = await asyncio.gather(*(_trigger(someone, job_id, QUEUED // 10) for job_id in jobs))
        admin.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(admin.wait(), 15) == 0
    return [run_id for run_ids in by_job for run_id in run_ids]


@pytest.mark.process
@pytest.mark.timeout(60 + 60 * STOPS)
async def test_what_is_queued_at_a_stop_runs_after_the_next_start_once(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    executor = BusyExecutor(scene)
    async with executor:
        async with scene.admin():
            await executor.register()
        for _ in range(STOPS):
            executor.free.clear()
            run_ids = await queue_and_stop(scene)
            phases: dict[int, str] = dict(await rows(scene, "SELECT id, phase FROM xxl_job_log WHERE phase NOT NULL"))
            assert len(run_ids) == QUEUED
            assert set(run_ids) == set(phases)
            assert Counter(phases.values())["pending"] > QUEUED / 4
            executor.free.set()
            async with scene.admin():
                await done(scene, run_ids)
    outcomes = await rows(scene, "SELECT outcome, count(*) FROM xxl_job_log GROUP BY outcome")
    assert outcomes == [("succeeded", QUEUED * STOPS)]
    assert sorted(executor.first_sends()) == sorted(set(executor.first_sends()))
    verdict = await judge_runs(scene, executor.executions)
    record_verdict("sqlite", f"stopped with {QUEUED} runs queued", STOPS, verdict)
    assert verdict.good, verdict
    assert verdict.executed == QUEUED * STOPS


# The kinds of writes, and which rows they are seen by.
TROUBLES = {
    "next time": "BEFORE UPDATE OF trigger_next_time ON xxl_job_info",
    "new run": "BEFORE INSERT ON xxl_job_log",
    "take-off": "BEFORE UPDATE OF phase ON xxl_job_log WHEN NEW.phase = 'sending'",
    # By its time: an acceptance and a result that come together are one write.
    "acceptance": (
        "BEFORE UPDATE OF accepted_ms ON xxl_job_log WHEN NEW.accepted_ms IS NOT NULL AND OLD.accepted_ms IS NULL"
    ),
    "result": "BEFORE UPDATE OF phase ON xxl_job_log WHEN NEW.phase IS NULL",
}


def _refusal(kind: str) -> str:
    """What the database says when it refuses a write; by it the log tells the kinds apart."""
    return f"{kind} refused by the test"


@contextlib.contextmanager
def _database(scene: Scene) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(scene.data_dir / "jobwheel.db", timeout=20)) as connection:
        yield connection


def _make_trouble(scene: Scene, kind: str) -> None:
    event, _, condition = TROUBLES[kind].partition(" WHEN ")
    condition = f"({condition}) AND" if condition else ""
    with _database(scene) as connection:
        connection.execute(
            f"CREATE TRIGGER trouble {event} WHEN {condition} abs(random()) % {ONE_IN} = 0 "
            f"BEGIN SELECT RAISE(ABORT, '{_refusal(kind)}'); END"
        )
        connection.commit()


def _end_trouble(scene: Scene) -> None:
    with _database(scene) as connection:
        connection.execute("DROP TRIGGER trouble")
        connection.commit()


@contextlib.asynccontextmanager
async def running_jobs(scene: Scene, fault: str, rounds_done: int) -> AsyncIterator[int]:
    """Per-second jobs at work under the admin of this process id; at the end all their runs are settled, and judged."""
    async with scene.admin() as admin, scene.executor(INSTANCE) as executor:
        async with operator(scene) as someone:
            await beaten(scene)
            jobs = await someone.jobs(JOBS, running=True, **EVERY_SECOND)
        began_ms = CLOCK.now()
        yield admin.pid
        await CLOCK.wait(1.5)
        until_ms = CLOCK.now() - 500
        await settled(scene, until_ms, 60)
        admin.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(admin.wait(), 15) == 0
        executor.send_signal(signal.SIGTERM)
        await executor.wait()
    misfires, runs = await read_admin(scene, jobs)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    starts = [start for start in starts if start.planned_ms > began_ms]
    verdict = judge(every_second(jobs, began_ms + 1, until_ms), starts, misfires, rows=scheduled(runs))
    record_verdict("sqlite", fault, rounds_done, verdict)
    assert verdict.good, verdict
    assert {run.outcome for run in runs if (run.planned_ms or 0) < until_ms - 1000} == {"succeeded"}


@pytest.mark.process
@pytest.mark.timeout(300 + 8 * TROUBLE_S)
async def test_a_write_that_fails_makes_no_instant_fire_twice_and_loses_none(tmp_path: Path) -> None:
    scene = await new_scene(tmp_path)
    scene.log_path = tmp_path / "processes.log"
    async with running_jobs(scene, "writes that fail at random", len(TROUBLES)):
        for kind in TROUBLES:
            await asyncio.to_thread(_make_trouble, scene, kind)
            await CLOCK.wait(TROUBLE_S)
            await _met(scene, kind)
            await asyncio.to_thread(_end_trouble, scene)
            await _claimed(scene)


async def _met(scene: Scene, kind: str) -> None:
    """Return once the admin's log tells of such a write that failed: the fault has really been there."""
    assert scene.log_path is not None
    log_path = scene.log_path

    async def look() -> bool:
        await CLOCK.wait(0.05)
        return _refusal(kind) in await asyncio.to_thread(log_path.read_text)

    try:
        await seen(look, MET_WITHIN_S)
    except TimeoutError:
        pytest.fail(f"no write of this kind was refused within {MET_WITHIN_S} s: {kind}")


async def _claimed(scene: Scene) -> None:
    """Return once a claim has worked: the admin tells of the first failure in a row, so the row has to end."""
    query = "SELECT min(trigger_next_time) FROM xxl_job_info WHERE trigger_status = 1"
    ((next_ms,),) = await rows(scene, query)
    await rows_when(scene, f"SELECT 1 WHERE ({query}) > ?", next_ms)


def _hold(scene: Scene, held: threading.Event, release: threading.Event) -> None:
    with _database(scene) as connection:
        connection.isolation_level = None
        connection.execute("BEGIN IMMEDIATE")
        held.set()
        release.wait(30)
        connection.execute("ROLLBACK")


async def delay_passes(scene: Scene, seconds: float) -> None:
    """Another process has the database for so long: nothing is planned meanwhile."""
    held, release = threading.Event(), threading.Event()
    holding = asyncio.create_task(asyncio.to_thread(_hold, scene, held, release))
    assert await asyncio.to_thread(held.wait, 20)
    await CLOCK.wait(seconds)
    release.set()
    await holding


@pytest.mark.process
@pytest.mark.timeout(60 + 12 * DELAYS)
async def test_a_pass_that_is_three_seconds_late_skips_no_second(tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    source = random.Random(seed)
    scene = await new_scene(tmp_path)
    async with running_jobs(scene, "passes three seconds late", DELAYS):
        for _ in range(DELAYS):
            await CLOCK.wait(source.uniform(0.5, 2))
            await delay_passes(scene, 3.0)


def _writing_process(admin_pid: int) -> int | None:
    children = Path(f"/proc/{admin_pid}/task/{admin_pid}/children").read_text().split()
    return int(children[0]) if children else None


async def kill_writing_process(admin_pid: int, before: int | None) -> int:
    """Kill the admin's child that writes the batches, once it is another than the last one."""
    async with asyncio.timeout(20):
        while (pid := _writing_process(admin_pid)) is None or pid == before:
            await CLOCK.wait(0.02)
    os.kill(pid, signal.SIGKILL)
    return pid


@pytest.mark.process
@pytest.mark.timeout(60 + 12 * WRITER_KILLS)
async def test_the_process_that_writes_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    source = random.Random(seed)
    scene = await new_scene(tmp_path)
    async with running_jobs(scene, "writing process killed", WRITER_KILLS) as admin_pid:
        killed = None
        for _ in range(WRITER_KILLS):
            await CLOCK.wait(source.uniform(0, 2))
            killed = await kill_writing_process(admin_pid, killed)
            await _claimed(scene)
