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

    An exception may be raised in that thread by another at any call that returns or begins: the order of the lines that
    come before and after the step matters.
    """

    _catches = False
    _first: _Step | None = None
    _steps = False
    was_stopped = False
    """Whether `stop` was called in the last first step; the loop does not turn then."""
    has_more = False
    """Whether anything may wait for a turn; a timer does, since one that was cancelled is dropped in a turn alone."""

    def begin(self, main: Coroutine[Any, Any, Any], context: contextvars.Context) -> asyncio.Task[Any]:
        """A task of this loop that goes on with `first_step`."""
        self.was_stopped = False
        self._catches = True
        try:
            return asyncio.Task(main, loop=self, context=context)
        finally:
            self._catches = False

    def first_step(self) -> None:
        """Go on with the task that has just begun, up to where it waits for the first time, or to its end."""
        if self._first is None:
            raise RuntimeError("no task has begun")
        if self.get_debug():
            # What a loop looks for in this mode it looks for while it turns.
            self.give_up_first_step()
            return
        callback, args, context = self._first
        self._steps = True
        try:
            asyncio._set_running_loop(self)  # noqa: SLF001 - documented, for those who make loops
            self._first = None
            if context is None:
                callback(*args)
            else:
                context.run(callback, *args)
        finally:
            self._steps = False
            asyncio._set_running_loop(None)  # noqa: SLF001

    def give_up_first_step(self) -> None:
        """Have a task that has begun, if its first step was not taken, take it in a turn."""
        if self._first is not None:
            callback, args, context = self._first
            self.call_soon(callback, *args, context=context)
            self._first = None

    def turn(self) -> None:
        """Let what waits have its turn, but for what it brings about in its turn."""
        self.has_more = False
        last = super().call_soon(self.stop)
        try:
            self.run_forever()
        finally:
            # If an exception has kept it from its turn, it would stop the next run.
            last.cancel()

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
        handle = super().call_soon_threadsafe(callback, *args, context=context)
        # Afterwards, since the loop may turn meanwhile: rather one turn for nothing than one too few.
        self.has_more = True
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self.has_more = True
        return super().call_at(when, callback, *args, context=context)

    def is_running(self) -> bool:
        return self._steps or super().is_running()

    def stop(self) -> None:
        if self._steps:
            self.was_stopped = True
        else:
            super().stop()
