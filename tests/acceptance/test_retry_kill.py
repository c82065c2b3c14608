"""The admin is killed while runs fail and are tried again: each chain has exactly the runs that its job allows."""

import asyncio
import random
import secrets
from collections import Counter
from pathlib import Path

import pytest

from tests.support.live_admin import seen
from tests.support.rounds import rounds
from tests.support.scene import CLOCK, Scene, read_starts
from tests.support.single_node import beaten, new_scene, operator, rows, working_executor

ROUNDS = rounds(2)
RETRIES = 2
RUNS_A_ROUND = 8
# The admin is away for some of the failures, which wait in the executor's spool.
MOST_UNTIL_KILL_S = 0.6
OPEN = "SELECT count(*) FROM xxl_job_log WHERE phase IS NOT NULL"
CHAINS = "SELECT id, coalesce(first_run_id, id), attempt, outcome, handle_code FROM xxl_job_log"


async def fail_and_kill(scene: Scene, source: random.Random) -> list[int]:
    """Let runs fail in an admin that is killed in the middle; their ids."""
    async with scene.admin() as admin, operator(scene) as someone:
        await beaten(scene)
        # The handler cannot read it as a number of seconds.
        job = await someone.job(parameter="fail", retry_count=RETRIES)
        made = [await someone.trigger(job) for _ in range(RUNS_A_ROUND)]
        await CLOCK.wait(source.uniform(0, MOST_UNTIL_KILL_S))
        admin.kill()
    return made


@pytest.mark.process
@pytest.mark.timeout(120 + 20 * ROUNDS)
async def test_each_chain_has_one_run_more_than_retries(tmp_path: Path) -> None:
    seed = secrets.randbelow(2**32)
    source = random.Random(seed)
    scene = await new_scene(tmp_path)
    async with working_executor(scene):
        firsts = [run_id for _ in range(ROUNDS) for run_id in await fail_and_kill(scene, source)]
        async with scene.admin():

            async def all_over() -> bool:
                await CLOCK.wait(0.1)
                return await rows(scene, OPEN) == [(0,)]

            await seen(all_over, 60)
    chains: dict[int, list[int]] = {run_id: [] for run_id in firsts}
    for run_id, first, attempt, outcome, code in await rows(scene, CHAINS):
        assert (outcome, code) == ("failed", 500), f"seed {seed}, run {run_id}"
        chains[first].append(attempt)
    assert all(sorted(each) == list(range(1, RETRIES + 2)) for each in chains.values()), f"seed {seed}: {chains}"
    starts = Counter(start.log_id for start in await asyncio.to_thread(read_starts, scene.starts_path))
    assert set(starts.values()) == {1}, f"seed {seed}: {starts}"
    assert len(starts) == len(firsts) * (RETRIES + 1)
