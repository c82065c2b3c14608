"""An event loop in which a task may take its first step before the loop turns."""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from typing import Any, TypeVarTuple

Arguments = TypeVarTuple("Arguments")

_Step = tuple[Callable[..., object], tuple[Any, ...], contextvars.Context | None]


class EagerLoop(asyncio.SelectorEventLoop):
    """The standard loop, for coroutines most of which never wait: a turn costs as much as all the rest of a short run.

    While a first step is taken the loop counts as running, but does not turn. Used from one thread.
    """

    _catches = False
    _first: _Step | None = None
    _steps = False
    was_stopped = False
    """Whether `stop` was called in the last first step; the loop does not turn then."""
    has_more = False
    """Whether anything waits for a turn since `begin`."""

    def begin(self, main: Coroutine[Any, Any, Any], context: contextvars.Context) -> asyncio.Task[Any]:
        """A task of this loop that goes on with `first_step`."""
        self._catches = True
        task = asyncio.Task(main, loop=self, context=context)
        self.has_more = self.was_stopped = False
        return task

    def first_step(self) -> None:
        """Go on with the task that has just begun, up to where it waits for the first time, or to its end."""
        if self._first is None:
            raise RuntimeError("no task has begun")
        (callback, args, context), self._first = self._first, None
        self._steps = True
        asyncio._set_running_loop(self)  # noqa: SLF001 - documented, for those who make loops
        try:
            if context is None:
                callback(*args)
            else:
                context.run(callback, *args)
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001
            self._steps = False

    def turn(self) -> None:
        """Let what waits have its turn, but for what it brings about in its turn."""
        self.has_more = False
        super().call_soon(self.stop)
        self.run_forever()

    def call_soon(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self._catches:
            # A task asks for its first step when it is made.
            self._catches, self._first = False, (callback, args, context)
            return asyncio.Handle(callback, args, self, context)
        self.has_more = True
        return super().call_soon(callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        self.has_more = True
        return super().call_soon_threadsafe(callback, *args, context=context)

    def is_running(self) -> bool:
        return self._steps or super().is_running()

    def stop(self) -> None:
        if self._steps:
            self.was_stopped = True
        else:
            super().stop()
