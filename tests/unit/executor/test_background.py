"""The thread of an executor: a take-over is tried until it succeeds; threads take short turns."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import background
from jobwheel.executor.background import ExecutorThread, short_turns
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.turn import Turn
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.service import Service
from tests.support.recording_admin import wait_until


def test_a_take_over_that_the_system_has_nothing_for_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[Exception] = [OSError("Too many open files")]

    class Runtime(Service):
        async def on_start(self) -> None:
            if failures:
                raise failures.pop()

    def make_runtime() -> Any:
        return Runtime("executor", SystemClock())

    turns = [False, True]
    monkeypatch.setattr(Turn, "take", lambda turn: turns.pop(0))
    monkeypatch.setattr(background, "_TAKE_OVER", Backoff(first_s=0.01, most_s=0.01))
    thread = ExecutorThread(make_runtime, Turn(ExecutorSettings(log_path=tmp_path), SystemClock()))
    thread.start_and_wait()
    assert thread.stands_by
    wait_until(lambda: not thread.stands_by)
    assert "executor.cannot_take_over" in caplog.text
    assert thread.runtime.running
    thread.stop_and_wait()


@pytest.fixture
def turns() -> Iterator[None]:
    former_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(former_s)


@pytest.mark.usefixtures("turns")
@pytest.mark.parametrize(("chosen_s", "inside_s"), [(0.005, 0.001), (0.02, 0.02), (0.0005, 0.0005)])
def test_turns_are_short_unless_the_program_has_chosen_them(chosen_s: float, inside_s: float) -> None:
    sys.setswitchinterval(chosen_s)
    with short_turns():
        assert sys.getswitchinterval() == pytest.approx(inside_s)
    assert sys.getswitchinterval() == pytest.approx(chosen_s)
