"""The task of an async handler, as other threads see it."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final

_SOON_S: Final = 1.0


class HandlerTask:
    """Cancels the task that an async handler runs in. Used for one run; nothing while there is no such task."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        self._to_cancel = False
        self._loop_reacts = False
        self._cancelled = False

    def begin(self, task: asyncio.Task[Any]) -> None:
        """From now on this is the task, which has not taken a step yet. In its loop's thread."""
        with self._lock:
            self._loop, self._task = task.get_loop(), task
            if self._to_cancel:
                self._loop.call_soon(self._cancel_later)

    def leave(self) -> None:
        """The loop has ended what it ran, tasks that the handler left behind included."""
        with self._lock:
            self._loop = self._task = None

    def cancel_soon(self) -> None:
        """Cancel the task in a second: until then its handler may end by itself. From any thread."""
        with self._lock:
            self._to_cancel = True
            self._call(self._cancel_later)

    def _cancel_later(self) -> None:
        self._loop_reacts = True
        asyncio.get_running_loop().call_later(_SOON_S, self._cancel_now)

    def cancel(self) -> bool:
        """Cancel the task at once. False: it does not help, since it was done before or the loop is blocked."""
        with self._lock:
            if self._task is None or self._task.done() or self._cancelled or not self._loop_reacts:
                return False
            # Whoever asks again has waited for nothing: the loop may be blocked since.
            self._loop_reacts = False
            self._call(self._cancel_now)
            return True

    def _cancel_now(self) -> None:
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    def wake(self) -> None:
        """Have the loop look up from its wait, so that what was raised in its thread is noticed. From any thread."""
        with self._lock:
            self._call(_nothing)

    def _call(self, callback: Callable[[], object]) -> None:
        """Have the loop call back; under the lock, so that it is not closed meanwhile."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(callback)


def _nothing() -> None:
    pass
