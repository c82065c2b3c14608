import asyncio
import os
import select
from pathlib import Path

import pytest

from jobwheel.cli.demo.child import Child, ChildPlan
from jobwheel.cli.demo.errors import ChildFailedError
from jobwheel.kernel.clock import SystemClock

pytestmark = [pytest.mark.process, pytest.mark.timeout(30)]


def _plan(tmp_path: Path, program: str, stop_s: float = 5.0) -> ChildPlan:
    (tmp_path / "child_program.py").write_text(program)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return ChildPlan("child", ["child_program"], environ, tmp_path / "child.log", stop_s)


async def test_a_child_that_does_not_stay_up_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    gave_up: asyncio.Queue[Exception] = asyncio.Queue()
    said: list[str] = []
    plan = _plan(tmp_path, "import sys; sys.exit('no such luck')")
    child = Child(plan, SystemClock(), said.append, gave_up.put_nowait)
    await child.start()
    failure = await gave_up.get()
    await child.stop()
    assert isinstance(failure, ChildFailedError)
    assert "ended by itself with code 1 (no such luck)" in failure.message
    assert str(plan.log_path) in failure.message
    assert said == ["the child ended by itself with code 1; starting it again"] * 4


async def test_a_child_that_ignores_the_polite_signal_is_killed(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, signal, threading\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"note = pathlib.Path({str(tmp_path / 'note')!r})\n"
        "note.write_text(str(os.getpid()))\n"
        f"note.rename({str(tmp_path / 'deaf')!r})\n"
        "threading.Event().wait()\n"
    )
    said: list[str] = []
    child = Child(_plan(tmp_path, program, stop_s=0.2), SystemClock(), said.append, lambda _: None)
    await child.start()
    async with asyncio.timeout(10):
        while not (tmp_path / "deaf").exists():
            await SystemClock().wait(0.01)
    handle = os.pidfd_open(int((tmp_path / "deaf").read_text()))
    await child.stop()
    ended, _, _ = select.select([handle], [], [], 0)
    os.close(handle)
    assert ended
    assert len(said) == 1
    assert "did not stop in time and is killed" in said[0]


async def test_a_child_that_is_stopped_while_it_is_being_started_again_stays_away(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    program = f"open({str(starts)!r}, 'a').write('x')"
    again = asyncio.Event()
    child = Child(_plan(tmp_path, program), SystemClock(), lambda _: again.set(), lambda _: None)
    await child.start()
    await again.wait()
    await child.stop()
    count = starts.stat().st_size
    await child.stop()
    assert starts.stat().st_size == count
