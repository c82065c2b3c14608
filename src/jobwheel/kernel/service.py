"""Long-lived things: idempotent start and stop, and supervised tasks that never die in silence."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


class Service:
    """Something that is started, works, and is stopped.

    Subclasses override `on_start` and `on_stop` and put their tasks under `supervise`. A service belongs to one event
    loop and may be started again after a stop.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.crashes: Counter[str] = Counter()
        self._started = asyncio.Event()
        self._running = False
        self._change = asyncio.Lock()
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def running(self) -> bool:
        """True from the start of `start` to the end of `stop`."""
        return self._running

    async def wait_started(self) -> None:
        """Return once `start` has ended well."""
        await self._started.wait()

    async def start(self) -> None:
        """Start; return when it works. Again: nothing. A start that fails has stopped what it had begun."""
        async with self._change:
            if self._running:
                return
            self._running = True
            try:
                await self.on_start()
            except BaseException:
                await self._end()
                raise
            self._started.set()

    async def stop(self) -> None:
        """Stop; return when nothing of it runs any more. Again, or before a start: nothing."""
        async with self._change:
            if self._running:
                await self._end()

    async def _end(self) -> None:
        self._started.clear()
        try:
            await self.on_stop()
        finally:
            await self._cancel_tasks()
            self._running = False

    async def on_start(self) -> None:
        """Begin to work. Supervised tasks are started here."""

    async def on_stop(self) -> None:
        """Finish the work in hand. Supervised tasks still run; they are cancelled afterwards."""

    def supervise(self, name: str, main: Callable[[], Awaitable[None]], backoff: Backoff | None = None) -> None:
        """Run `main` as a named task until it returns or the service stops.

        A crash is logged and counted, and `main` is started again after a back-off.

        Raises:
            RuntimeError: a task of that name still runs.
        """
        if name in self._tasks and not self._tasks[name].done():
            raise RuntimeError(f"{self.name} already runs a task named {name}")
        task = asyncio.create_task(self._supervised(name, main, backoff or Backoff()), name=f"{self.name}.{name}")
        self._tasks[name] = task

    async def cancel(self, name: str) -> None:
        """End a supervised task before the service stops."""
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _supervised(self, name: str, main: Callable[[], Awaitable[None]], backoff: Backoff) -> None:
        failures = 0
        while True:
            try:
                await main()
            except (Exception, asyncio.CancelledError):
                if _is_cancelled():
                    raise
                # A cancellation that nobody asked this task for comes from something it waited for: a crash as well.
                failures += 1
                self.crashes[name] += 1
                log.exception("service.task_crashed", service=self.name, task=name, crashes=self.crashes[name])
                await self.clock.wait(backoff.delay_s(failures))
            else:
                return

    async def _cancel_tasks(self) -> None:
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class ServiceGroup(Service):
    """Services that start in order and stop in the opposite order."""

    def __init__(self, name: str, clock: Clock, services: Sequence[Service]) -> None:
        super().__init__(name, clock)
        self.services = list(services)

    async def on_start(self) -> None:
        for service in self.services:
            await service.start()
            log.debug("service.started", service=service.name)

    async def on_stop(self) -> None:
        for service in reversed(self.services):
            try:
                await service.stop()
            except Exception:
                log.exception("service.stop_failed", service=service.name)
            else:
                log.debug("service.stopped", service=service.name)
