"""The event loop of a worker thread, in which its async handlers run."""

import asyncio
import contextvars
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
            self._runner = asyncio.Runner()
            self._runner.get_loop().set_task_factory(self._make_task)
        try:
            return self._runner.run(main, context=context)
        finally:
            if self._tasks:
                self._cancel_left(self._runner)

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
        # The handler's own task is done, but its callback runs only when the loop goes on.
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


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
