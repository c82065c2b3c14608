"""The thread that an executor lives in, and waiting for a signal or the program's end."""

import asyncio
import atexit
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final, Self

from jobwheel.executor.runtime import ExecutorRuntime
from jobwheel.executor.turn import Turn
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.event_loop import loop_factory
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_TAKE_OVER: Final = Backoff(first_s=1.0, most_s=30.0)
_USUAL_TURN_S: Final = 0.005
_TURN_S: Final = 0.001
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_WAKE: Final = b"\0"
_ENDS: Final = (_WAKE, *(bytes([number]) for number in _SIGNALS))


@contextlib.contextmanager
def short_turns() -> Iterator[None]:
    """Let threads of Python take turns of a millisecond, unless the program has chosen how long they are.

    For a process that is an executor and nothing else: with the usual five, and as many jobs at work as a machine has
    threads for, a beat is answered after the turns of all of them.
    """
    former_s = sys.getswitchinterval()
    if former_s == _USUAL_TURN_S:
        sys.setswitchinterval(_TURN_S)
    try:
        yield
    finally:
        sys.setswitchinterval(former_s)


def before_exit(callback: Callable[[], None]) -> None:
    """Call back when the program ends by itself, while threads still work; not at the end of a child that is forked."""
    process = os.getpid()

    def call() -> None:
        if os.getpid() == process:
            callback()

    # `atexit` is too late for an executor, which needs threads and pools of threads to stop: the pools are closed by
    # then. They register themselves here, before us, and what is registered last is called first.
    register: Callable[[Callable[[], None]], object] = getattr(threading, "_register_atexit", atexit.register)
    register(call)


class ExecutorThread:
    """The thread of an executor's event loop.

    Args:
        make_runtime: makes the runtime; again after a take-over that failed.
        turn: what the process needs to serve.
    """

    def __init__(self, make_runtime: Callable[[], ExecutorRuntime], turn: Turn) -> None:
        self._thread = threading.Thread(target=self._run, name="jobwheel-executor", daemon=True)
        self._make_runtime = make_runtime
        self._turn = turn
        self.runtime = make_runtime()
        self.stands_by = False
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._on_end: Callable[[], None] | None = None
        self._ended = False

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def start_and_wait(self) -> None:
        """Start, and return once the runtime has started, or stands by. Raises what kept it from starting."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error

    def stop_and_wait(self) -> None:
        """Let the runtime stop; return when the thread has ended. Raises what went wrong meanwhile."""
        if self._loop is not None and self._stop is not None and self.alive:
            try:
                self._loop.call_soon_threadsafe(self._stop.set)
            except RuntimeError:
                log.debug("executor.ended_already")
        self._thread.join()
        if self._error is not None:
            raise self._error

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call back when the thread ends, or now if it has; when it ends this moment, perhaps twice."""
        self._on_end = callback
        # Not whether the thread is alive: it is for a moment after it has looked for somebody to call.
        if self._ended:
            callback()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._main())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._error = error
        finally:
            self._ready.set()
            self._ended = True
            if self._on_end is not None:
                self._on_end()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        try:
            if await self._started(self._stop):
                await self._stop.wait()
                await self.runtime.stop()
        finally:
            self._turn.release()

    async def _started(self, stop: asyncio.Event) -> bool:
        """Start the runtime, when it is this process's turn; False: it was stopped before."""
        if self._turn.take():
            await self.runtime.start()
            self._ready.set()
            return True
        self.stands_by = True
        self._ready.set()
        if not await self._turn.wait(stop) or not await self._take_over(stop):
            return False
        self.stands_by = False
        return True

    async def _take_over(self, stop: asyncio.Event) -> bool:
        """Start until it succeeds: nobody waits for an error any more, and the process before may have left a rest."""
        failures = 0
        while not stop.is_set():
            try:
                await self.runtime.start()
            except (JobwheelError, OSError) as error:
                failures += 1
                log.warning("executor.cannot_take_over", error=str(error), failures=failures)
                self.runtime = self._make_runtime()
                await self.runtime.clock.wait(_TAKE_OVER.delay_s(failures), stop)
            else:
                return True
        return False


class SignalWait:
    """Waits for a signal, through a pipe that the interpreter writes a signal's number to the moment it comes.

    A handler would be too late: it runs between two steps of the main thread, and a signal that comes after the last
    step before the wait would be seen when the wait is over, which is never.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._former: dict[signal.Signals, Any] = {}
        self._former_fd = -1

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            os.set_blocking(self._writer, False)
            self._former_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            self._former = {number: signal.signal(number, self._give_back) for number in _SIGNALS}
        return self

    def _give_back(self, *_: object) -> None:
        # At the first signal, and not only after the wait: what is done before that may take long, or hang.
        for number, handler in self._former.items():
            signal.signal(number, signal.SIG_DFL if handler is signal.default_int_handler else handler)

    def wake(self) -> None:
        os.write(self._writer, _WAKE)

    def until_signal(self) -> None:
        """Return on the first signal or `wake`, also one that has come before.

        A second signal, now or before, is handled as it was before; Ctrl-C ends the process. Python's own handler would
        raise in this thread, which ends nothing at once: others are at work.
        """
        while os.read(self._reader, 1) not in _ENDS:
            # The application handles other signals, and their numbers come here, too.
            pass
        self._give_back()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        if self._former:
            signal.set_wakeup_fd(self._former_fd)
        os.close(self._reader)
        os.close(self._writer)
