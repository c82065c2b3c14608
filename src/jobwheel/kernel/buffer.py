"""Many small writes made into few large ones."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """How much waits, how long, and how often a failed batch is tried whole."""

    most_items: int = 1000
    most_wait_s: float = 0.0
    whole_tries: int = 3
    drain_s: float = 10.0


class BatchingBuffer(Service, Generic[Item]):
    """Hands items on in batches, in order: when `most_items` wait, or the oldest waited `most_wait_s`.

    `flush` owns a batch until it returns. If it raises, the batch is tried again whole `whole_tries` times with a
    back-off, then item by item, so that one bad item costs only itself; an item that fails alone goes to `reject`.
    `is_outage` says of an error that no item is to blame for it (the database is away): then the whole batch is tried
    again for as long as it takes. `stop` drains what waits; it gives up after `drain_s` and rejects the rest.
    """

    def __init__(
        self,
        name: str,
        flush: Callable[[Sequence[Item]], Awaitable[None]],
        reject: Callable[[Item, Exception], None],
        clock: Clock,
        limits: BufferLimits | None = None,
        is_outage: Callable[[Exception], bool] = lambda _: False,
    ) -> None:
        super().__init__(name, clock)
        self._flush = flush
        self._reject = reject
        self._limits = limits or BufferLimits()
        self._is_outage = is_outage
        self._backoff = Backoff(first_s=0.05, most_s=5.0)
        self._items: deque[Item] = deque()
        self._some = asyncio.Event()
        self._full = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self.waits_out_outage = False
        """Whether the last try failed, and no item was to blame for it: what waits does so for as long as it takes."""

    def __len__(self) -> int:
        """How many items wait, without those being flushed."""
        return len(self._items)

    def add(self, item: Item) -> None:
        """Put an item in. Never waits; call from the loop's own thread."""
        self._items.append(item)
        self._idle.clear()
        self._some.set()
        if len(self._items) >= self._limits.most_items:
            self._full.set()

    async def drained(self) -> None:
        """Return once everything put in so far has been flushed or rejected."""
        await self._idle.wait()

    async def on_start(self) -> None:
        self._draining = False
        self.supervise("flush", self._loop)

    async def on_stop(self) -> None:
        self._draining = True
        self._full.set()
        if not await self.clock.wait(self._limits.drain_s, self._idle):
            await self.cancel("flush")
            self._give_up()

    def _give_up(self) -> None:
        log.error("buffer.gave_up", buffer=self.name, items=len(self._items))
        while self._items:
            self._reject(self._items.popleft(), TimeoutError(f"{self.name} could not be drained before the stop"))
        self._settle_idle()

    async def _loop(self) -> None:
        while True:
            await self._some.wait()
            if self._limits.most_wait_s > 0:
                await self.clock.wait(self._limits.most_wait_s, self._full)
            else:
                # One turn of the loop, so that items put in by tasks that are ready now share the batch.
                await self.clock.wait(0)
            await self._flush_next()

    async def _flush_next(self) -> None:
        batch = [self._items.popleft() for _ in range(min(len(self._items), self._limits.most_items))]
        if len(self._items) < self._limits.most_items and not self._draining:
            self._full.clear()
        try:
            await self._flush_surely(batch)
        finally:
            # What is still in the batch was neither flushed nor rejected: the stop came, or `reject` itself failed.
            self._items.extendleft(reversed(batch))
        if not self._items:
            self._settle_idle()

    def _settle_idle(self) -> None:
        self._some.clear()
        self._full.clear()
        self._idle.set()

    async def _flush_surely(self, batch: list[Item]) -> None:
        """Flush or reject each item, and take it out of the batch."""
        if await self._try(batch, self._limits.whole_tries) is None:
            batch.clear()
        while batch:
            error = await self._try(batch[:1], 1)
            item = batch.pop(0)
            if error is not None:
                self._reject(item, error)

    async def _try(self, items: list[Item], tries: int) -> Exception | None:
        """Flush until it works (None), or has failed `tries` times: the last error. Outages do not count."""
        rounds = failures = 0
        while True:
            try:
                await self._flush(tuple(items))
            except Exception as error:  # noqa: BLE001 - whatever went wrong, the items must not be lost
                log.warning("buffer.flush_failed", buffer=self.name, items=len(items), error=repr(error))
                rounds += 1
                self.waits_out_outage = self._is_outage(error)
                failures += not self.waits_out_outage
                if failures >= tries:
                    return error
            else:
                self.waits_out_outage = False
                return None
            await self.clock.wait(self._backoff.delay_s(rounds))
