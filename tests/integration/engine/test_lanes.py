"""The slow lane of a live admin: which jobs come into it, and out of it again."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome
from tests.support.live_admin import LiveAdmin, live_admin, until
from tests.support.recording_executor import Answer, Asked, RecordingExecutor
from tests.support.stepped_clock import SteppedClock

SLOW_SEND_MS = 50
SLOW_SENDS = 3


@pytest.fixture
async def clock() -> SteppedClock:
    """At the end of a minute, which may come at any moment, every job is fast again: this one has just begun."""
    clock = SteppedClock()
    clock.step_to_next_minute()
    return clock


@pytest.fixture
async def live(tmp_path: Path, prepared: Path, clock: SteppedClock) -> AsyncIterator[LiveAdmin]:
    shutil.copytree(prepared, tmp_path / "data")
    settings: dict[str, Any] = {"slow_send_ms": SLOW_SEND_MS, "slow_sends": SLOW_SENDS, "send_timeout_s": 20.0}
    async with live_admin(tmp_path / "data", clock=clock, **settings) as started:
        yield started


@dataclass
class Held:
    """Requests that wait for their answer: it comes when they are released, and then after longer than a fast send."""

    then: Answer
    asked: list[Asked] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | bytes | None:
        self.asked.append(asked)
        await self.released.wait()
        await SteppedClock().wait(2 * SLOW_SEND_MS / 1000)
        return await self.then(executor, asked)


def sends(live: LiveAdmin) -> tuple[int, int]:
    """How many requests have a slot of the fast lane, and of the slow one."""
    fast, slow = live.admin.engine.collect().lanes
    return fast.in_use, slow.in_use


async def sends_of(live: LiveAdmin, held: Held, *jobs: Job) -> tuple[int, int]:
    """Have each of the jobs make a slow send at once; in which lanes they were."""
    held.asked.clear()
    held.released.clear()
    run_ids = [await live.trigger(job) for job in jobs]
    await until(lambda: len(held.asked) == len(jobs))
    found = sends(live)
    held.released.set()
    for run_id in run_ids:
        await live.done(run_id)
    # A result may come before the answer.
    await until(lambda: sends(live) == (0, 0))
    return found


async def test_a_job_with_slow_sends_is_in_the_slow_lane_until_the_minute_ends(
    live: LiveAdmin, clock: SteppedClock
) -> None:
    async with live.executor() as executor:
        await executor.register()
        slow, other = await live.job(), await live.job()
        held = Held(executor.answer)
        executor.answer = held.answer
        for _ in range(SLOW_SENDS + 1):
            assert await sends_of(live, held, slow) == (1, 0)
        assert await sends_of(live, held, slow) == (0, 1)
        assert await sends_of(live, held, slow, other) == (1, 1)
        clock.step_to_next_minute()
        assert await sends_of(live, held, slow) == (1, 0)
    assert {run.outcome for run in await live.runs(slow)} == {Outcome.SUCCEEDED}


@pytest.mark.parametrize("idle", [True, False], ids=["yes", "no"])
async def test_slow_answers_to_questions_make_a_job_slow_as_well(live: LiveAdmin, idle: bool) -> None:
    async with live.executor(idle=idle) as executor:
        await executor.register()
        job = await live.job(route_strategy="BUSYOVER")
        held = Held(executor.ask)
        executor.ask = held.answer
        for _ in range(SLOW_SENDS + 1):
            assert await sends_of(live, held, job) == (1, 0)
        assert await sends_of(live, held, job) == (0, 1)
    assert {run.outcome for run in await live.runs(job)} == {Outcome.SUCCEEDED if idle else Outcome.FAILED}
