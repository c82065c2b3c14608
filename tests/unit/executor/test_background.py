"""The thread of an executor: a take-over is tried until it succeeds; threads take short turns; signals are not lost."""

import ctypes
import operator
import os
import signal
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import background
from jobwheel.executor.background import ExecutorThread, SignalWait, short_turns
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


def test_who_asks_for_the_end_while_it_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make_runtime() -> Any:
        return Service("executor", SystemClock())

    monkeypatch.setattr(Turn, "take", lambda turn: True)
    thread = ExecutorThread(make_runtime, Turn(ExecutorSettings(log_path=tmp_path), SystemClock()))
    thread.start_and_wait()
    ending, told, may_end = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        ending.set()
        may_end.wait(10)

    thread.on_end(hold)
    stopping = threading.Thread(target=thread.stop_and_wait)
    stopping.start()
    assert ending.wait(10)
    thread.on_end(told.set)
    assert thread.alive
    assert told.is_set()
    may_end.set()
    stopping.join(10)
    assert not thread.alive


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


@pytest.fixture
def own_handlers() -> Iterator[list[int]]:
    """The signals that a handler of the application gets, which it has for each that ends an executor, and another."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    got: list[int] = []
    former = {number: signal.signal(number, lambda number, _frame: got.append(number)) for number in numbers}
    yield got
    for number, handler in former.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_just_before_the_wait_ends_it(
    number: int, own_handlers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, kill_myself = os.read, ctypes.CDLL(None)["raise"]

    def late(descriptor: int, size: int) -> bytes:
        # Without a step of the interpreter between the signal and the wait, in which it would call a handler.
        data: bytes
        _, data = map(operator.call, (partial(kill_myself, number), partial(read, descriptor, size)))
        return data

    with SignalWait() as wait:
        monkeypatch.setattr(os, "read", late)
        wait.until_signal()
    assert own_handlers == []


def test_another_signal_goes_to_its_own_handler_and_a_second_one_too(own_handlers: list[int]) -> None:
    with SignalWait() as wait:
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGTERM)
        wait.until_signal()
        assert own_handlers == [signal.SIGUSR1]
        os.kill(os.getpid(), signal.SIGTERM)
        assert own_handlers == [signal.SIGUSR1, signal.SIGTERM]
        wait.wake()
        wait.until_signal()
    os.kill(os.getpid(), signal.SIGINT)
    assert own_handlers == [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT]


def test_a_second_signal_before_the_wait_is_not_kept_from_its_own_handler(own_handlers: list[int]) -> None:
    with SignalWait() as wait:
        os.kill(os.getpid(), signal.SIGTERM)
        assert own_handlers == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert own_handlers == [signal.SIGTERM]
        wait.until_signal()
