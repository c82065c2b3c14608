"""A handler in a child process, and a call of it for one run."""

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jobwheel.executor.child_messages import Began, Begin, Ended, Leave, LogLine, Progress, Setup, Stop
from jobwheel.executor.child_setup import HandlerSource
from jobwheel.executor.context import JobContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_process import HandlerProcess
from jobwheel.executor.invocation import Outcome
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import FAILURE

log = get_logger(__name__)

# For `destroy` and what else a child does at its end.
_LEAVE_S: Final = 5.0
# For a child whose pipe has ended: it is dead, or will never say a word again.
_DYING_S: Final = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class ProcessHandler:
    """A handler that runs in a child process of each worker."""

    source: HandlerSource

    @property
    def name(self) -> str:
        return self.source.name

    def begin(self, context: JobContext, loop: HandlerLoop) -> "ProcessCall":
        """A call for one run. The child is started with the first of a worker, and kept for the others."""
        return ProcessCall(self, context, loop)


class KeptProcess:
    """The child of one worker, from one run to the next. Used by the worker's thread alone."""

    def __init__(self, source: HandlerSource) -> None:
        self._source = source
        self._process: HandlerProcess | None = None

    def get(self) -> tuple[HandlerProcess, Setup | None]:
        """The child; with a new one what it is to be told first.

        Raises:
            OSError: the system gives no process.
            HandlerError: a child could not import the handler.
        """
        if self._process is not None:
            self._tell_leftovers(self._process)
            return self._process, None
        setup = self._source.setup()
        self._process = HandlerProcess(self._source.name)
        return self._process, setup

    def bury(self, grace_s: float = _DYING_S) -> str:
        """See the child out, by force after `grace_s`; says how it ended."""
        process, self._process = self._process, None
        assert process is not None
        try:
            ending = process.finish(grace_s)
            self._tell_leftovers(process)
            return ending
        finally:
            process.close()

    def close(self) -> None:
        """Let the child call `destroy` and end."""
        if self._process is not None:
            self._process.send(Leave())
            self.bury(_LEAVE_S)

    def _tell_leftovers(self, process: HandlerProcess) -> None:
        """What is written outside of runs belongs to none of their logs."""
        for line in process.written():
            _outside_of_runs(log.info, "job.child_wrote", handler=self._source.name, text=line.text)


def _outside_of_runs(tell: Callable[..., None], event: str, **fields: object) -> None:
    contextvars.Context().run(tell, event, **fields)


class ProcessCall:
    """One run in the child process. Killed at any moment, it takes the child along; the next run gets a new one."""

    def __init__(self, handler: ProcessHandler, context: JobContext, loop: HandlerLoop) -> None:
        self._handler = handler
        self._context = context
        self._loop = loop
        self._lock = threading.Lock()
        self._process: HandlerProcess | None = None
        self._told = self._began = self._stopped = self._killed = False

    def run(self) -> Outcome:
        """Have the child run the handler; whatever becomes of the child, an outcome comes of it.

        Raises:
            HandlerError: a child could not import the handler.
        """
        kept = self._loop.keep(self._handler, lambda: KeptProcess(self._handler.source))
        outcome = None
        while outcome is None:
            outcome = self._try(kept)
        return outcome

    def _try(self, kept: KeptProcess) -> Outcome | None:
        """None: a child of former runs had ended before this one began. The next is a new one, and tells the end."""
        with self._lock:
            if self._killed:
                return Outcome(FAILURE, "killed before it began")
            try:
                process, setup = kept.get()
            except OSError as error:
                return Outcome(FAILURE, f"the child process cannot be started: {error}")
            self._process = process
        # Not under the lock: a child that takes nothing in must not keep anybody from killing it.
        if setup is not None:
            process.send(setup)
        process.send(Begin(self._context.request, str(self._context.log_path)))
        with self._lock:
            self._told = True
            if self._stopped:
                self._send_stop(process)
        return self._follow(process, kept, is_new=setup is not None)

    def _follow(self, process: HandlerProcess, kept: KeptProcess, *, is_new: bool) -> Outcome | None:
        try:
            ended = self._listen(process)
        except BaseException:
            # The next run must not hear what the child has to say of this one.
            process.kill()
            kept.bury()
            raise
        finally:
            with self._lock:
                # From here on the child may be another run's.
                self._process, self._told = None, False
        if ended is not None:
            if ended.final:
                kept.bury()
            return Outcome(ended.code, ended.message)
        how = kept.bury()
        if self._killed:
            return Outcome(FAILURE, "killed")
        if is_new or self._began:
            return Outcome(FAILURE, f"the child process ended during the run: {how}")
        _outside_of_runs(log.warning, "job.child_ended_idle", handler=self._handler.name, how=how)
        return None

    def _listen(self, process: HandlerProcess) -> Ended | None:
        """Take what the child says to where it belongs. None: it ended without a result."""
        for event in process.events():
            if isinstance(event, LogLine):
                self._context.run_log.write(event.level, event.text)
            elif isinstance(event, Began):
                self._began = True
            elif isinstance(event, Progress):
                self._context.progress(event.fraction, event.text)
            else:
                return event
        return None

    def _send_stop(self, process: HandlerProcess) -> None:
        process.send(Stop(self._context.log_id))

    def stop(self) -> None:
        """Let the handler know that it is to end."""
        with self._lock:
            self._stopped = True
            if self._process is not None and self._told:
                self._send_stop(self._process)

    def kill(self) -> bool:
        """End the child and its group. Always for sure."""
        with self._lock:
            self._killed = True
            if self._process is not None:
                self._process.kill()
        return True
