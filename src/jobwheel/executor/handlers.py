"""Job handlers, and a call of one for one run."""

import contextvars
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from jobwheel.executor.context import JobContext
from jobwheel.executor.errors import ParameterError
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_task import HandlerTask
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.parameters import Reader
from jobwheel.executor.thread_kill import KillableSection
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import FAILURE, SUCCESS

log = get_logger(__name__)

HandlerFunction = Callable[..., Any]
"""Sync or async; takes the context, the job's parameter in a type that it declares, both or nothing."""

Hook = Callable[[], Any]
"""Sync or async; what it returns is not looked at."""


class HandlerObject(Protocol):
    """A handler as an object. Its `init` and `destroy`, if it has them, are called as hooks."""

    @property
    def execute(self) -> HandlerFunction: ...


@dataclass(frozen=True, slots=True, eq=False)
class JobHandler:
    """A handler and how to call it. `init` and `destroy` are called when a worker begins with it, and when it ends."""

    name: str
    function: HandlerFunction
    takes_context: bool
    read_parameter: Reader | None = None
    init: Hook | None = None
    destroy: Hook | None = None

    def arguments(self, context: JobContext) -> list[Any]:
        """What to call the function with.

        Raises:
            ParameterError: the job's parameter is not of the declared type.
        """
        first: list[Any] = [context] if self.takes_context else []
        return first if self.read_parameter is None else [*first, self.read_parameter(context.parameter)]

    def prepare(self, loop: HandlerLoop, finish: Callable[[Any], Any]) -> None:
        """Call `init`, unless it has been called in this worker without an error; `finish` awaits what it returns."""
        if self.init is not None or self.destroy is not None:
            loop.keep(self, lambda: WorkerHooks(self, loop)).begin(finish)

    def begin(self, context: JobContext, loop: HandlerLoop) -> "HandlerCall":
        """A call of the function for one run."""
        return HandlerCall(self, context, loop)


class HandlerCall:
    """One call of a handler's function, in the worker's thread; an async one runs in the worker's event loop.

    To stop it tells the context, and cancels the task of an async handler a moment later. Killed, the task is
    cancelled; if its loop does not react, or it goes on, `RunKilled` is raised in the thread.
    """

    def __init__(self, handler: JobHandler, context: JobContext, loop: HandlerLoop) -> None:
        self.handler = handler
        self.context = context
        self.loop = loop
        self._section = KillableSection()
        self._task = HandlerTask()

    def run(self) -> Outcome:
        """Call the function. What it returns becomes the message, unless it has set an outcome."""
        with self._section:
            try:
                arguments = self.handler.arguments(self.context)
            except ParameterError as error:
                return Outcome(FAILURE, error.message)
            self.handler.prepare(self.loop, self._finished)
            value = self._finished(self.handler.function(*arguments))
            return self.context.outcome or Outcome(SUCCESS, message_of(value))

    def _finished(self, value: Any) -> Any:
        """What user code returned; if it can be awaited, what comes of that in a task that can be cancelled."""
        if not inspect.isawaitable(value):
            return value
        try:
            main = value if inspect.iscoroutine(value) else _awaited(value)
            return self.loop.run(main, contextvars.copy_context(), self._task.begin)
        finally:
            self._task.leave()

    def stop(self) -> None:
        """Ask it to end."""
        self.context.cancel()
        self._task.cancel_soon()

    def kill(self) -> bool:
        """End it if it can be ended. Again: by harder means."""
        if not self._task.cancel():
            self._section.kill()
            self._task.wake()
        return False


class WorkerHooks:
    """Calls a handler's `init` and `destroy` for one worker, in its thread."""

    def __init__(self, handler: JobHandler, loop: HandlerLoop) -> None:
        self._handler = handler
        self._loop = loop
        self._begun = False

    def begin(self, finish: Callable[[Any], Any]) -> None:
        """Call `init`. Again: nothing, but one that raised is called anew."""
        if not self._begun:
            if self._handler.init is not None:
                finish(self._handler.init())
            self._begun = True

    def close(self) -> None:
        """Call `destroy` if the worker has begun. What it raises is logged."""
        if not self._begun or self._handler.destroy is None:
            return
        try:
            value = self._handler.destroy()
            if inspect.isawaitable(value):
                self._loop.run(_awaited(value), contextvars.copy_context())
        except BaseException:
            # Around user code, in a thread that has more to close.
            log.exception("job.destroy_failed", handler=self._handler.name)


async def _awaited(value: Any) -> Any:
    return await value


def message_of(value: object) -> str | None:
    """What a handler returned as a run's message: a text as it is, anything else as JSON if it can be."""
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)
