"""Three admins on one database, one of them killed at a time: no planned instant is lost and none is run twice."""

import asyncio
import contextlib
import os
import random
import secrets
import signal
from pathlib import Path

import pytest

from jobwheel.admin.domain.run import Outcome, Run
from tests.support.checker import judge
from tests.support.http_peer import unused_port
from tests.support.run_servers import Servers
from tests.support.scene import CLOCK, Scene, make_jobs, read_admin, read_starts
from tests.support.servers import SERVER_KINDS

JOBS = 10
NODES = 3
# Rounds of a kill; the short way is for every test run.
ROUNDS = int(os.environ.get("JOBWHEEL_CHAOS_ROUNDS", "3"))
# A dead node's runs are adopted 15 s after its last heartbeat, at the next one of an heir; then they are still to run.
ADOPTED_WITHIN_S = 30


async def serve(scene: Scene, port: int, stop: asyncio.Event, kill: asyncio.Event) -> None:
    """One node: started again whenever it was killed, stopped gracefully at the end."""
    while not stop.is_set():
        async with scene.admin(port) as admin:
            ended = [asyncio.create_task(event.wait()) for event in (stop, kill)]
            await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.cancel()
            if kill.is_set():
                kill.clear()
                admin.kill()
            else:
                admin.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(admin.wait(), 10) == 0


async def kill_one_at_a_time(source: random.Random, kills: list[asyncio.Event]) -> None:
    for _ in range(ROUNDS):
        await CLOCK.wait(source.uniform(1.5, 4))
        source.choice(kills).set()


@pytest.mark.process
@pytest.mark.timeout(150 + 10 * ROUNDS)
@pytest.mark.parametrize("kind", SERVER_KINDS)
async def test_a_killed_nodes_instants_are_run_once_by_the_others(servers: Servers, tmp_path: Path, kind: str) -> None:
    seed = secrets.randbelow(2**32)
    await servers.run_here(kind, "DROP DATABASE IF EXISTS cluster", "CREATE DATABASE cluster")
    url = servers.running[kind].url("cluster")
    scene = Scene(tmp_path / "data", secrets.token_urlsafe(16), unused_port(), unused_port(), url)
    ports = [unused_port() for _ in range(NODES)]
    admins = ",".join(f"http://127.0.0.1:{port}" for port in ports)
    jobs = await make_jobs(scene, JOBS)
    stop, kills = asyncio.Event(), [asyncio.Event() for _ in ports]
    executor_arguments = (admins, scene.token, scene.executor_port, scene.starts_path)
    async with scene.process("tests.support.sdk_executor_process", *executor_arguments) as executor:
        async with asyncio.TaskGroup() as group:
            for port, kill in zip(ports, kills, strict=True):
                group.create_task(serve(scene, port, stop, kill))
            # From here on there is a live address: what runs before the executor's first beat fails and says so.
            await seen_start(scene)
            await kill_one_at_a_time(random.Random(seed), kills)
            killed_ms = CLOCK.now()
            await CLOCK.wait(ADOPTED_WITHIN_S)
            stop.set()
        executor.send_signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(executor.wait(), 12)
    misfires, runs = await read_admin(scene, jobs)
    starts = await asyncio.to_thread(read_starts, scene.starts_path)
    first_ms = min(start.planned_ms for start in starts)
    planned = [(job_id, at) for job_id in jobs for at in range(first_ms, killed_ms, 1000)]
    excused = [(run.job_id, run.planned_ms or 0) for run in runs if _says_why(run)]
    excused = [each for each in excused if each[1] >= first_ms]
    verdict = judge(planned, starts, misfires, excused)
    assert verdict.good, f"seed {seed}: {verdict}"
    assert verdict.executed > len(planned) / 2


async def seen_start(scene: Scene) -> None:
    """Return once a run has begun."""
    async with asyncio.timeout(40):
        while not scene.starts_path.exists() or not scene.starts_path.stat().st_size:
            await CLOCK.wait(0.1)


def _says_why(run: Run) -> bool:
    """The run failed and says why."""
    return run.outcome is Outcome.FAILED and "no live address" in (run.trigger_message or "")
