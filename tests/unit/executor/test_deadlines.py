import threading
from collections.abc import Iterator

import pytest

from jobwheel.executor.deadlines import Deadlines
from jobwheel.kernel.clock import SystemClock
from tests.support.refused_threads import refused_threads


@pytest.fixture
def deadlines() -> Iterator[Deadlines]:
    made = Deadlines(SystemClock())
    yield made
    made.close()


class Calls:
    """Notes who was called back, and waits for a number of them."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._changed = threading.Condition()

    def note(self, name: str) -> None:
        with self._changed:
            self.names.append(name)
            self._changed.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.names) >= count, 5), self.names
            return list(self.names)


def test_the_earliest_is_called_first_whatever_the_order_they_were_set_in(deadlines: Deadlines) -> None:
    calls = Calls()
    for name, delay_s in (("late", 0.2), ("early", 0.05), ("middle", 0.1)):
        deadlines.set(name, delay_s, lambda name=name: calls.note(name))  # type: ignore[misc]  # bound now
    assert calls.wait_for(3) == ["early", "middle", "late"]


def test_none_is_called_before_its_time(deadlines: Deadlines) -> None:
    clock, seen = SystemClock(), Calls()
    began = clock.monotonic()
    deadlines.set("a", 0.1, lambda: seen.note(str(clock.monotonic() - began)))
    assert 0.1 <= float(seen.wait_for(1)[0]) < 2


def test_what_was_cleared_is_not_called_and_what_was_set_anew_once(deadlines: Deadlines) -> None:
    calls = Calls()
    deadlines.set("cleared", 0.02, lambda: calls.note("cleared"))
    deadlines.clear("cleared")
    deadlines.set("anew", 0.02, lambda: calls.note("first"))
    deadlines.set("anew", 0.04, lambda: calls.note("second"))
    deadlines.set("last", 0.1, lambda: calls.note("last"))
    deadlines.clear("never set")
    assert calls.wait_for(2) == ["second", "last"]


def test_a_callback_may_set_the_next_deadline(deadlines: Deadlines) -> None:
    calls = Calls()

    def again() -> None:
        calls.note("again")
        if len(calls.names) < 3:
            deadlines.set("a", 0.001, again)

    deadlines.set("a", 0.001, again)
    assert calls.wait_for(3) == ["again"] * 3


def test_a_callback_that_raises_is_logged_and_costs_no_other(
    deadlines: Deadlines, caplog: pytest.LogCaptureFixture
) -> None:
    calls = Calls()

    def broken() -> None:
        raise ZeroDivisionError

    deadlines.set("a", 0.001, broken)
    deadlines.set("b", 0.02, lambda: calls.note("b"))
    calls.wait_for(1)
    assert "deadlines.callback_failed" in caplog.text


def test_one_thread_serves_them_all_and_ends_with_close() -> None:
    before = set(threading.enumerate())
    deadlines, calls = Deadlines(SystemClock()), Calls()
    assert set(threading.enumerate()) == before
    for number in range(100):
        deadlines.set(number, 60, lambda: calls.note("x"))
    assert len(set(threading.enumerate()) - before) == 1
    deadlines.close()
    assert set(threading.enumerate()) == before
    deadlines.set("late", 0, lambda: calls.note("x"))
    deadlines.close()
    assert calls.names == []
    assert set(threading.enumerate()) == before


def test_a_thread_that_the_system_refuses_is_asked_for_again(deadlines: Deadlines) -> None:
    calls = Calls()
    with refused_threads(), pytest.raises(RuntimeError):
        deadlines.set("refused", 0, lambda: calls.note("refused"))
    deadlines.set("next", 0.001, lambda: calls.note("next"))
    assert calls.wait_for(2) == ["refused", "next"]
