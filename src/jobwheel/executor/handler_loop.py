"""The event loop of a worker thread, in which its async handlers run."""

import asyncio
import contextvars
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeVar

from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


class Kept(Protocol):
    """What a worker keeps from one run to the next."""

    def close(self) -> None:
        """Called once in the worker's thread when it ends; must not raise."""
        ...


KeptType = TypeVar("KeptType", bound=Kept)


class HandlerLoop:
    """An event loop made on first use. A handler that blocks it holds up nothing but its own job.

    The standard one, since each job has its own: uvloop's takes a third of a megabyte. Used from one thread. Tasks
    that a handler leaves behind are cancelled when it returns, as `asyncio.run` does.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._runner: asyncio.Runner | None = None
        self._selector: _PatientSelector | None = None
        self._main: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._kept: dict[object, Any] = {}

    def keep(self, owner: object, make: Callable[[], KeptType]) -> KeptType:
        """What this worker keeps for `owner`, made on first use and closed with the loop."""
        if owner not in self._kept:
            self._kept[owner] = make()
        kept: KeptType = self._kept[owner]
        return kept

    def run(self, main: Coroutine[Any, Any, Any], context: contextvars.Context) -> Any:
        """Run `main` to its end inside `context` and return what it returns."""
        if self._runner is None:
            self._selector = selector = _PatientSelector()
            self._runner = asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector))
            self._runner.get_loop().set_task_factory(self._make_task)
        try:
            return self._run_task(self._runner.get_loop(), main, context)
        finally:
            if self._tasks:
                self._cancel_left(self._runner)

    def _run_task(
        self, loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, Any], context: contextvars.Context
    ) -> Any:
        # Not by the runner, whose two turns of the loop and many callbacks cost more than a short handler.
        task = self._main = asyncio.Task(self._follow(main, loop), loop=loop, context=context)
        if self._selector is not None:
            self._selector.skips_next = True
        try:
            loop.run_forever()
        finally:
            self._main = None
            if not task.done():
                # The loop was left by force, or by a handler that stopped it.
                self._tasks.add(task)
            elif not task.cancelled():
                # Looked at, also if the loop has let through what it ended with.
                task.exception()
        if not task.done():
            raise RuntimeError("the handler stopped its event loop before it was done")
        return task.result()

    async def _follow(self, main: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
        """Await `main`, and let the loop end with this very turn."""
        try:
            return await main
        finally:
            # One that its run has left already ends in somebody else's turn.
            if self._main is not None and self._main is asyncio.current_task():
                loop.stop()

    def _make_task(
        self,
        loop: asyncio.AbstractEventLoop,
        main: Any,
        **options: Any,
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(main, loop=loop, **options)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _cancel_left(self, runner: asyncio.Runner) -> None:
        # A task that is done is among them still if its callback has not had its turn.
        left = [task for task in self._tasks if not task.done()]
        self._tasks.clear()
        if left:
            log.warning("job.tasks_left_behind", worker=self._owner, tasks=len(left))
            runner.run(_cancel(left))

    def close(self) -> None:
        """Close what is kept, and then the loop, if there ever was one."""
        while self._kept:
            self._kept.popitem()[1].close()
        if self._runner is not None:
            self._runner.close()
            self._runner = None


class _PatientSelector(selectors.DefaultSelector):
    """Does not ask the system before the first step of a run: whatever it had to tell can wait for the second.

    Short handlers end in the first, and other threads would take their turn meanwhile.
    """

    skips_next = False

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.skips_next:
            self.skips_next = False
            return []
        return super().select(timeout)


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
