"""Ends a thread by raising an exception in it: the last resort, and only while it is inside a handler."""

import ctypes
import logging
import sys
import threading
from types import CodeType, TracebackType
from typing import Final, Self

# Between these and the block that gives the lock back an exception keeps it for good, and with it all threads that log.
_LOCKING: Final[frozenset[CodeType]] = frozenset(
    function.__code__
    for function in (
        logging.Handler.acquire,
        logging.Handler.release,
        # Up to Python 3.12.
        getattr(logging, "_acquireLock", None),
        getattr(logging, "_releaseLock", None),
    )
    if function is not None
)
_TRIES: Final = 100
_PAUSE_S: Final = 0.001


class RunKilled(BaseException):
    """Raised inside a handler whose run is ended by force, wherever it is at that moment.

    Not an `Exception`, so that `except Exception` does not swallow it. Code that waits in C is not interrupted: it is
    raised when that returns.
    """


class KillableSection:
    """The part of a thread's work in which it may be hit by `RunKilled`. Entered once, by the thread itself.

    When the section has been left, nothing is raised in the thread any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread_id: int | None = None

    def __enter__(self) -> Self:
        with self._lock:
            self._thread_id = threading.get_ident()
        return self

    def kill(self) -> None:
        """Raise `RunKilled` in the thread, once, if it is inside. From any thread.

        Not while it takes a lock of `logging`: that is waited for a moment, and then it is for another call.
        """
        pause = threading.Event()
        for _ in range(_TRIES):
            with self._lock:
                if self._thread_id is None:
                    return
                if not _takes_a_lock(self._thread_id):
                    _raise_in(self._thread_id, RunKilled)
                    self._thread_id = None
                    return
            pause.wait(_PAUSE_S)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        # What was raised before the lock is had comes up when it is given back, which is still inside.
        with self._lock:
            self._thread_id = None


def _takes_a_lock(thread_id: int) -> bool:
    frame = sys._current_frames().get(thread_id)  # noqa: SLF001 - documented, named so
    return frame is not None and frame.f_code in _LOCKING


def _raise_in(thread_id: int, exception: type[BaseException]) -> None:
    """Have an exception raised in a thread before its next step in Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread_id), ctypes.py_object(exception))
