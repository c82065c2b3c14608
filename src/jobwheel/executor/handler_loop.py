"""The event loop of a worker thread, in which its async handlers run."""

import asyncio
import contextvars
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from jobwheel.executor.eager_loop import EagerLoop
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

# What a handler dropped is closed by a task, which is made in one turn and begins in the next.
_LAST_TURNS: Final = 2


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
        self._loop: EagerLoop | None = None
        self._runner: asyncio.Runner | None = None
        self._main: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._kept: dict[object, Any] = {}

    def keep(self, owner: object, make: Callable[[], KeptType]) -> KeptType:
        """What this worker keeps for `owner`, made on first use and closed with the loop."""
        if owner not in self._kept:
            self._kept[owner] = make()
        kept: KeptType = self._kept[owner]
        return kept

    def run(
        self,
        main: Coroutine[Any, Any, Any],
        context: contextvars.Context,
        begun: Callable[[asyncio.Task[Any]], object] | None = None,
    ) -> Any:
        """Run `main` to its end inside `context` and return what it returns; `begun` is told its task before."""
        loop = self._loop or self._make_loop()
        try:
            return self._run_task(loop, main, context, begun)
        finally:
            if loop.has_more or self._tasks:
                self._tidy_up(loop)

    def _make_loop(self) -> EagerLoop:
        loop = self._loop = EagerLoop()
        self._runner = asyncio.Runner(loop_factory=lambda: loop)
        # A loop watches over asynchronous generators only while it turns; a first step may begin some, too.
        sys.set_asyncgen_hooks(*self._runner.run(_asyncgen_hooks()))
        loop.set_task_factory(self._make_task)
        return loop

    def _run_task(
        self,
        loop: EagerLoop,
        main: Coroutine[Any, Any, Any],
        context: contextvars.Context,
        begun: Callable[[asyncio.Task[Any]], object] | None,
    ) -> Any:
        # Not by the runner, whose turns of the loop and many callbacks cost more than a short handler.
        task: asyncio.Task[Any] | None = None
        try:
            task = self._main = loop.begin(main, context)
            if begun is not None:
                begun(task)
            loop.first_step()
            if not task.done() and not loop.was_stopped:
                task.add_done_callback(self._stop)
                loop.run_forever()
            if not task.done():
                raise RuntimeError("the handler stopped its event loop before it was done")
            return task.result()
        finally:
            self._main = None
            if task is None or not task.done():
                # The loop was left by force, or by a handler that stopped it: nothing of it goes on.
                loop.give_up_first_step()
                self._cancel(loop, asyncio.all_tasks(loop))
            elif not task.cancelled():
                # Looked at, also if the loop has let through what it ended with.
                task.exception()

    def _stop(self, task: asyncio.Task[Any]) -> None:
        # One that its run has left already ends in somebody else's turn.
        if self._main is task:
            task.get_loop().stop()

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

    def _tidy_up(self, loop: EagerLoop) -> None:
        for _ in range(_LAST_TURNS):
            if loop.has_more:
                loop.turn()
        # A task that is done is among them still if its callback has not had its turn.
        left = {task for task in self._tasks if not task.done()}
        self._tasks.clear()
        self._cancel(loop, left)

    def _cancel(self, loop: EagerLoop, left: set[asyncio.Task[Any]]) -> None:
        if left:
            log.warning("job.tasks_left_behind", worker=self._owner, tasks=len(left))
            # Before the loop turns: no step is taken without knowing of it.
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    def close(self) -> None:
        """Close what is kept, and then the loop, if there ever was one."""
        while self._kept:
            self._kept.popitem()[1].close()
        if self._runner is not None:
            self._runner.close()
            sys.set_asyncgen_hooks(None, None)
            self._runner = self._loop = None


async def _asyncgen_hooks() -> tuple[Any, Any]:
    hooks = sys.get_asyncgen_hooks()
    return hooks.firstiter, hooks.finalizer
