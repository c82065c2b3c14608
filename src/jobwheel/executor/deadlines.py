"""One thread that calls back at deadlines, however many runs have one."""

import threading
from collections.abc import Callable
from typing import Final

from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_MOST_WAIT_S: Final = 3600.0

Callback = Callable[[], None]


class Deadlines:
    """Calls back when a deadline has passed. Each owner has one deadline at most; safe to use from any thread.

    Callbacks run one after the other in the thread of this class, so they must be short. One that raises is logged.
    The thread begins with the first deadline.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        # Few: an owner is a run under way. They are looked through only when the next of them has passed.
        self._due: dict[object, tuple[float, Callback]] = {}
        self._next_s = float("inf")
        self._thread: threading.Thread | None = None
        self._closed = False

    def set(self, owner: object, delay_s: float, callback: Callback) -> None:
        """Call back in `delay_s`; replaces the owner's deadline, if it has one. Nothing after `close`.

        Raises:
            RuntimeError: the system gives no thread. The deadline holds once another is set and there is one.
        """
        due_s = self._clock.monotonic() + delay_s
        with self._changed:
            if self._closed:
                return
            self._due[owner] = (due_s, callback)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="jobwheel-deadlines", daemon=True)
                thread.start()
                self._thread = thread
            if due_s < self._next_s:
                self._changed.notify()

    def clear(self, owner: object) -> None:
        """The owner has no deadline any more. A callback that is being called is not waited for."""
        with self._changed:
            self._due.pop(owner, None)

    def close(self) -> None:
        """Call back no more. Returns when the thread has ended."""
        with self._changed:
            self._closed = True
            self._due.clear()
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (callbacks := self._wait()) is not None:
            for callback in callbacks:
                _call(callback)
            # Not kept while nothing is due: a callback holds its run.
            del callbacks[:]

    def _wait(self) -> list[Callback] | None:
        """The callbacks whose deadlines have passed, the earliest first; None when this is closed."""
        with self._changed:
            while not self._closed:
                now_s = self._clock.monotonic()
                passed = sorted(
                    ((due_s, owner) for owner, (due_s, _) in self._due.items() if due_s <= now_s),
                    key=lambda item: item[0],
                )
                if passed:
                    return [self._due.pop(owner)[1] for _, owner in passed]
                self._next_s = min((due_s for due_s, _ in self._due.values()), default=float("inf"))
                self._changed.wait(min(self._next_s - now_s, _MOST_WAIT_S))
                self._next_s = float("inf")
            return None


def _call(callback: Callback) -> None:
    try:
        callback()
    except Exception:
        log.exception("deadlines.callback_failed")
