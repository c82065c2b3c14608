"""An executor on pyxxl, which is written in Python and not ours, works under our admin."""

import asyncio
from pathlib import Path

import pytest

from tests.support.http_peer import unused_port
from tests.support.live_rest import live_rest
from tests.support.operator_view import OperatorView

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]
PROGRAM = Path(__file__).with_name("pyxxl_executor.py")
TEXT = "day=2026-11-28 对账 · ✓"


async def test_an_operator_sees_what_runs_do(pyxxl: Path, tmp_path: Path) -> None:
    port = unused_port()
    async with live_rest(tmp_path / "data") as rest:
        arguments = (PROGRAM, rest.live.url, rest.live.token, port, tmp_path / "executor")
        with (tmp_path / "said").open("wb") as said:
            process = await asyncio.create_subprocess_exec(
                pyxxl, *map(str, arguments), stdout=said, stderr=said, cwd=tmp_path
            )
        try:
            view = OperatorView(rest)
            await view.registered(f"http://127.0.0.1:{port}")
            await _check(view)
            process.terminate()
            await view.registered()
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _check(view: OperatorView) -> None:
    echo, explode, unknown = [await view.run(handler, TEXT) for handler in ("echo", "explode", "nobody")]
    assert await view.ended(echo) == ("succeeded", 200, f"got {TEXT}")
    await view.log_shows(echo, f"got {TEXT}")
    outcome, code, message = await view.ended(explode)
    assert (outcome, code) == ("failed", 500)
    assert f"exploded {TEXT}" in message
    assert (await view.done(unknown))["outcome"] == "failed"
    sleeping = await view.run("sleep")
    await view.log_shows(sleeping, "sleeps")
    await view.rest.post(f"runs/{sleeping}/kill", {"by_job": True})
    assert (await view.ended(sleeping))[0] == "killed"
    # It has no code of its own for a time-out.
    assert await view.ended(await view.run("sleep", timeout_s=1)) == ("failed", 500, "TimeoutError")
