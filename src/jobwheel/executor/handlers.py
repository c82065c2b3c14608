"""The job handlers of an executor, by name."""

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from jobwheel.executor.context import JobContext
from jobwheel.executor.errors import HandlerError
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_task import HandlerTask
from jobwheel.executor.invocation import Outcome, Work
from jobwheel.executor.thread_kill import KillableSection
from jobwheel.wire.messages import SUCCESS

HandlerFunction = Callable[[JobContext], Any] | Callable[[], Any]
"""Sync or async; its one parameter without a default is the context; what it returns becomes the run's message."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class JobHandler:
    """A handler and how to call it."""

    name: str
    function: Callable[..., Any]
    takes_context: bool

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
        function = self.handler.function
        with self._section:
            value = function(self.context) if self.handler.takes_context else function()
            if inspect.isawaitable(value):
                value = self._run_async(value)
            return self.context.outcome or Outcome(SUCCESS, message_of(value))

    def _run_async(self, value: Awaitable[Any]) -> Any:
        try:
            return self.loop.run(self._task.follow(value), contextvars.copy_context())
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


class HandlerTable:
    """The handlers by name. Safe to use from any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, Work] = {}
        self._lock = threading.Lock()

    def register(self, name: str, function: HandlerFunction) -> None:
        """Add a handler.

        Raises:
            HandlerError: the name is empty or taken, or the function cannot be called with the context or nothing.
        """
        if not name or name != name.strip():
            raise HandlerError(name, "a name is a text that is not empty and has no spaces around it")
        self.add(JobHandler(name, function, _takes_context(name, function)))

    def add(self, work: Work) -> None:
        """Add what is to be carried out under its name.

        Raises:
            HandlerError: the name is taken.
        """
        with self._lock:
            if work.name in self._handlers:
                raise HandlerError(work.name, "is registered already; each name stands for one handler")
            self._handlers[work.name] = work

    def get(self, name: str) -> Work | None:
        return self._handlers.get(name)

    @property
    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._handlers)


def _takes_context(name: str, function: HandlerFunction) -> bool:
    if not callable(function):
        raise HandlerError(name, f"{function!r} cannot be called")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        # Some built-in callables have no signature; they are tried with the context.
        return True
    positional = [item for item in parameters if item.kind in _POSITIONAL]
    needed = [item for item in positional if item.default is item.empty]
    keywords = [item for item in parameters if item.kind is item.KEYWORD_ONLY and item.default is item.empty]
    if len(needed) > 1 or keywords:
        raise HandlerError(name, "takes the context or nothing, but has more parameters without a default")
    # Parameters with a default keep it: a handler that never meant to take the context must not get it in their place.
    return bool(needed) or any(item.kind is item.VAR_POSITIONAL for item in parameters)


def message_of(value: object) -> str | None:
    """What a handler returned as a run's message: a text as it is, anything else as JSON if it can be."""
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)
