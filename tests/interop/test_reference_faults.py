"""What happens to runs on the reference's own executors when a process freezes, dies, or cannot reach the admin."""

import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase, Run
from tests.support.http_peer import HttpPeer, reply, unused_port
from tests.support.live_admin import LiveAdmin, live_admin, seen, until
from tests.support.recoveries import look_now
from tests.support.reference_executor import ReferenceExecutors

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]
TEN_MINUTES_MS = 600_000
# The library tries results again each half minute.
RETRIED_WITHIN_S = 60.0


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveAdmin]:
    async with live_admin(tmp_path / "data", send_timeout_s=2.0) as started:
        yield started


async def registered(live: LiveAdmin, count: int = 1) -> None:
    async def look() -> bool:
        query = "SELECT COUNT(*) FROM xxl_job_registry"
        return await live.admin.database.read(lambda c: c.exec_driver_sql(query).scalar()) == count

    await seen(look)


async def accepted(live: LiveAdmin, handler: str, parameter: str) -> RunId:
    run_id = await live.trigger(await live.job(handler=handler, parameter=parameter))
    await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
    return run_id


@pytest.mark.parametrize("version", ["2.2.0", "3.3.2"])
async def test_a_frozen_executor_goes_on_with_the_run_it_got(
    version: str, executors: ReferenceExecutors, live: LiveAdmin
) -> None:
    async with executors.start(version, live.url, live.token) as executor:
        await registered(live)
        job = await live.job(handler="echo", parameter="after the frost")
        executor.freeze()
        run_id = await live.trigger(job)
        await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
        executor.wake()
        run = await live.done(run_id)
        assert (run.outcome, run.handle_message) == (Outcome.SUCCEEDED, "got after the frost")
        assert [each.id for each in await live.runs(job)] == [run_id]


@pytest.mark.parametrize("version", ["2.2.0", "3.3.2"])
async def test_a_run_is_kept_while_busy_and_lost_when_its_process_was_replaced(
    version: str, executors: ReferenceExecutors, live: LiveAdmin
) -> None:
    async with executors.start(version, live.url, live.token) as executor:
        await registered(live)
        run_id = await accepted(live, "sleep", "60000")
        before_ms = live.admin.database.now_ms()
        await look_now(live, run_id, TEN_MINUTES_MS)
        run = await live.run_when(run_id, lambda run: (run.unheard_ms or 0) >= before_ms)
        assert run.phase is Phase.ACCEPTED
        await executor.kill()
    async with executors.start(version, live.url, live.token, executor.port):
        for count in (1, 2):
            await look_now(live, run_id, TEN_MINUTES_MS)
            await _idle_answers(live, run_id, count)
        await look_now(live, run_id, TEN_MINUTES_MS)
        lost = await live.done(run_id)
        assert lost.outcome is Outcome.LOST
        assert "idle 3 times running" in (lost.handle_message or "")


async def _idle_answers(live: LiveAdmin, run_id: RunId, count: int) -> None:
    query = f"SELECT idle_answers FROM xxl_job_log WHERE id = {run_id}"

    async def look() -> bool:
        return await live.admin.database.read(lambda c: c.exec_driver_sql(query).scalar()) == count

    await seen(look)


async def test_a_run_is_lost_when_its_process_is_gone_for_ten_minutes(
    executors: ReferenceExecutors, live: LiveAdmin
) -> None:
    async with executors.start("2.5.0", live.url, live.token) as executor:
        await registered(live)
        run_id = await accepted(live, "sleep", "60000")
        await executor.kill()
        older = f"UPDATE xxl_job_registry SET beat_ms = beat_ms - {TEN_MINUTES_MS}"
        await live.admin.database.write(lambda c: c.exec_driver_sql(older))
        await look_now(live, run_id, TEN_MINUTES_MS)
        lost = await live.done(run_id)
        assert (lost.outcome, lost.trigger_code, lost.handle_code) == (Outcome.LOST, 200, 500)


async def test_a_result_arrives_once_the_admin_is_there_again(executors: ReferenceExecutors, tmp_path: Path) -> None:
    port, token, end = unused_port(), secrets.token_urlsafe(16), tmp_path / "end"
    async with contextlib.AsyncExitStack() as stack:
        async with live_admin(tmp_path / "data", token, port=port) as live:
            # 3.3.2 keeps results that it could not report in one folder of the machine, whatever log path it is given:
            # an executor of another test would take them, and report them to its own admin.
            for version in ("2.2.0", "2.5.0"):
                await stack.enter_async_context(executors.start(version, live.url, token))
            await registered(live, 2)
            job = await live.job(handler="await", parameter=str(end), route_strategy="SHARDING_BROADCAST")
            await live.trigger(job)
            runs = await seen(lambda: _accepted_runs(live, job, 2))
        async with HttpPeer(wanted_port=port, otherwise=reply(b"", 503, close=True)) as refusing:
            end.touch()
            await until(lambda: sum("/api/callback" in each.request_line for each in refusing.requests) >= 2)
        async with live_admin(tmp_path / "data", token, port=port) as again:
            ends = [await again.done(run.id, RETRIED_WITHIN_S) for run in runs]
            assert [(run.outcome, run.handle_message) for run in ends] == [(Outcome.SUCCEEDED, "saw the file")] * 2


async def _accepted_runs(live: LiveAdmin, job: Job, count: int) -> list[Run] | None:
    runs = await live.runs(job)
    return runs if [run.phase for run in runs] == [Phase.ACCEPTED] * count else None
