"""What `/metrics` of a live admin says of runs that wait."""

import asyncio
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from jobwheel.admin.domain.job import Job
from tests.support.live_admin import LiveAdmin, live_admin, seen
from tests.support.metrics import samples
from tests.support.recording_executor import INSTANCE, Answer, Asked, RecordingExecutor

METRICS_TOKEN = secrets.token_urlsafe(12)
RUNS = 300
NAMES = {
    "in_flight": "jobwheel_sends_in_flight",
    "parked": "jobwheel_parked_runs",
    "sends": "jobwheel_lane_sends{lane=fast}",
    "waiting": "jobwheel_lane_waiting_runs{lane=fast}",
    "sent": "jobwheel_run_lateness_seconds_count",
}
# Two waits of up to 8 s.
pytestmark = pytest.mark.timeout(30)


@pytest.fixture
async def live(tmp_path: Path, prepared: Path) -> AsyncIterator[LiveAdmin]:
    shutil.copytree(prepared, tmp_path / "data")
    async with live_admin(tmp_path / "data", send_timeout_s=20.0, metrics_token=METRICS_TOKEN) as started:
        yield started


async def read_metrics(live: LiveAdmin) -> dict[str, float]:
    headers = {"Authorization": f"Bearer {METRICS_TOKEN}"}
    async with httpx.AsyncClient(trust_env=False, headers=headers) as client:
        return samples(await client.get(f"{live.url}/metrics"))


async def metrics_are(live: LiveAdmin, **wanted: float) -> None:
    """Return once `/metrics` says so (`NAMES`)."""

    async def look() -> bool:
        found = await read_metrics(live)
        return {name: found[NAMES[name]] for name in wanted} == wanted

    await seen(look)


def held(released: asyncio.Event, then: Answer) -> Answer:
    async def answer(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | bytes | None:
        await released.wait()
        return await then(executor, asked)

    return answer


async def all_end(live: LiveAdmin, job: Job) -> None:
    async def look() -> bool:
        runs = await live.runs(job)
        return len(runs) == RUNS and all(run.phase is None for run in runs)

    await seen(look)
    # Results may come before the last answers.
    await metrics_are(live, sends=0, in_flight=0, parked=0, waiting=0, sent=RUNS)


async def test_runs_that_wait_for_room_at_their_executor(live: LiveAdmin) -> None:
    released = asyncio.Event()
    async with live.executor() as executor:
        await executor.register()
        executor.answer = held(released, executor.answer)
        job = await live.job()
        for _ in range(RUNS):
            await live.trigger(job)
        await metrics_are(live, sends=32, in_flight=96, parked=RUNS - 96, waiting=0)
        released.set()
        await all_end(live, job)


async def test_runs_that_wait_until_their_executors_are_asked(live: LiveAdmin) -> None:
    released = asyncio.Event()
    async with live.executor() as executor:
        await executor.register()
        executor.ask = held(released, executor.ask)
        job = await live.job(route_strategy="FAILOVER")
        for _ in range(RUNS):
            await live.trigger(job)
        # One group leaves a fifth of the lane's slots to the others.
        await metrics_are(live, sends=160, in_flight=0, parked=0, waiting=RUNS - 160)
        released.set()
        await all_end(live, job)


async def test_what_an_executor_tells_of_itself(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        told = executor.registration()
        told["features"] |= {"running": 3, "queued": 14, "spooled": 15, "abandoned": 1}
        assert (await executor.post("registry", told))["code"] == 200
        labels = f"{{address={executor.address},app_name=orders}}"
        wanted = {
            f"jobwheel_executor_running_runs{labels}": 3,
            f"jobwheel_executor_queued_runs{labels}": 14,
            f"jobwheel_executor_unreported_results{labels}": 15,
            f"jobwheel_executor_abandoned_threads{labels}": 1,
        }

        async def look() -> bool:
            found = await read_metrics(live)
            return {name: found.get(name) for name in wanted} == wanted

        await seen(look)
