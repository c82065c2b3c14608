"""Executors on the reference's own library work under our admin: what an operator does and sees every day."""

import asyncio
from pathlib import Path

import pytest

from tests.support.live_rest import live_rest
from tests.support.operator_view import OperatorView
from tests.support.reference_executor import ReferenceExecutors
from tests.support.reference_library import VERSIONS

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]
TEXT = "day=2026-11-28 对账 · ✓"
SHELL = 'echo "script $1 of shard $2/$3"\n'


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_operator_sees_what_runs_do(version: str, executors: ReferenceExecutors, tmp_path: Path) -> None:
    async with (
        live_rest(tmp_path / "data") as rest,
        executors.start(version, rest.live.url, rest.live.token) as executor,
    ):
        view = OperatorView(rest)
        await view.registered(executor.address)
        await _check_results(view)
        await asyncio.gather(_check_log(view), _check_script(view), _check_kill(view), _check_time_out(view))
        await executor.stop()
        await view.registered()


async def _check_results(view: OperatorView) -> None:
    echo, refuse, explode, unknown, shard = [
        await view.run(handler, TEXT) for handler in ("echo", "refuse", "explode", "nobody", "shard")
    ]
    assert await view.ended(echo) == ("succeeded", 200, f"got {TEXT}")
    assert await view.ended(refuse) == ("failed", 500, f"refused {TEXT}")
    outcome, code, message = await view.ended(explode)
    assert (outcome, code) == ("failed", 500)
    assert f"exploded {TEXT}" in message
    assert await view.ended(shard) == ("succeeded", 200, "shard 0 of 1")
    run = await view.done(unknown)
    assert (run["outcome"], run["trigger_code"], run["handle_code"]) == ("failed", 500, 0)
    assert "nobody" in run["trigger_message"]


async def _check_log(view: OperatorView) -> None:
    run_id = await view.run("talk", "2500")
    assert await view.ended(run_id) == ("succeeded", 200, "talked · ✓")
    log = await view.whole_log(run_id)
    said = [line for line in log.splitlines() if "对账完成 · ✓ 𝄞" in line]
    assert [f"line {number}:" in line for number, line in enumerate(said, 1)] == [True] * 2500


async def _check_script(view: OperatorView) -> None:
    job = {"glue_type": "GLUE_SHELL", "glue_source": SHELL, "glue_remark": "says what it is given"}
    run_id = await view.run("", "month", **job)
    assert (await view.done(run_id))["outcome"] == "succeeded"
    assert "script month of shard 0/1" in await view.whole_log(run_id)


async def _check_kill(view: OperatorView) -> None:
    run_id = await view.run("sleep", "60000")
    await view.log_shows(run_id, "sleeps")
    await view.rest.post(f"runs/{run_id}/kill", {"by_job": True})
    outcome, code, _ = await view.ended(run_id)
    assert (outcome, code) == ("killed", 500)


async def _check_time_out(view: OperatorView) -> None:
    outcome, code, _ = await view.ended(await view.run("sleep", "60000", timeout_s=1))
    assert (outcome, code) == ("timed_out", 502)
