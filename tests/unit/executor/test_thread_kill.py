import io
import logging
import sys
import threading
from collections.abc import Callable

import pytest

from jobwheel.executor import thread_kill
from jobwheel.executor.thread_kill import KillableSection, RunKilled
from tests.support.recording_admin import wait_until


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_an_endless_loop_is_ended() -> None:
    section, inside, seen = KillableSection(), threading.Event(), []

    def work() -> None:
        try:
            with section:
                inside.set()
                while True:
                    pass
        except RunKilled as error:
            seen.append(error)

    thread = in_thread(work)
    assert inside.wait(5)
    section.kill()
    thread.join(5)
    assert len(seen) == 1


def test_except_exception_does_not_swallow_it() -> None:
    section, inside, ended = KillableSection(), threading.Event(), threading.Event()

    def work() -> None:
        try:
            with section:
                inside.set()
                while True:
                    try:
                        sum(range(100))
                    except Exception:  # noqa: BLE001 - what is tested
                        continue
        except RunKilled:
            ended.set()

    thread = in_thread(work)
    assert inside.wait(5)
    section.kill()
    thread.join(5)
    assert ended.is_set()


def test_outside_the_section_nothing_is_raised() -> None:
    section = KillableSection()
    section.kill()
    with section:
        pass
    section.kill()
    assert sum(range(1000)) == 499_500


def test_it_is_raised_once_however_often_it_is_killed() -> None:
    section, inside, caught, go = KillableSection(), threading.Event(), threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        with section:
            try:
                inside.set()
                while True:
                    pass
            except RunKilled:
                caught.set()
                assert go.wait(5)
                ended.append("by itself")

    thread = in_thread(work)
    assert inside.wait(5)
    section.kill()
    assert caught.wait(5)
    section.kill()
    go.set()
    thread.join(5)
    assert ended == ["by itself"]


def test_a_kill_while_the_section_is_being_left_comes_up_in_the_section() -> None:
    section, inside, go = KillableSection(), threading.Event(), threading.Event()
    seen: list[str] = []

    def work() -> None:
        try:
            with section:
                inside.set()
                go.wait(5)
        except RunKilled:
            seen.append("in the section")
        try:
            sum(range(1000))
        except RunKilled:
            seen.append("behind it")

    thread = in_thread(work)
    assert inside.wait(5)
    assert thread.ident is not None
    with section._lock:
        go.set()
        wait_until(lambda: sys._current_frames()[thread.ident or 0].f_code.co_name == "__exit__")
        # As `kill` does it, now that the thread waits for the lock to leave.
        thread_kill._raise_in(thread.ident, RunKilled)
        section._thread_id = None
    thread.join(5)
    assert seen == ["in the section"]


@pytest.mark.parametrize("switch_s", [1e-6, 5e-3])
def test_a_kill_at_the_very_end_hits_the_section_or_nothing(switch_s: float) -> None:
    """What comes after the section is never hit, whenever the kill comes."""
    after_hit: list[BaseException] = []
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(switch_s)
    try:
        for _ in range(300):
            section, inside = KillableSection(), threading.Event()

            def work(section: KillableSection = section, inside: threading.Event = inside) -> None:
                try:
                    with section:
                        inside.set()
                except RunKilled:
                    pass
                try:
                    sum(range(2000))
                    for _ in range(200):
                        pass
                except RunKilled as error:
                    after_hit.append(error)

            thread = in_thread(work)
            inside.wait(5)
            section.kill()
            thread.join(5)
    finally:
        sys.setswitchinterval(before_s)
    assert after_hit == []


def test_who_waits_for_a_lock_of_logging_is_hit_when_it_has_given_that_back() -> None:
    section, handler, ended = KillableSection(), logging.StreamHandler(io.StringIO()), threading.Event()
    waiting = {logging.Handler.handle.__code__, logging.Handler.acquire.__code__}

    def work() -> None:
        try:
            with section:
                handler.handle(logging.makeLogRecord({}))
                while True:
                    pass
        except RunKilled:
            ended.set()

    handler.acquire()
    thread = in_thread(work)
    assert thread.ident is not None
    wait_until(lambda: sys._current_frames()[thread.ident or 0].f_code in waiting)
    section.kill()
    handler.release()
    section.kill()
    thread.join(5)
    assert ended.is_set()
    assert handler.lock is not None
    assert handler.lock.acquire(timeout=5)
