"""Two stages that the batches of a lane pass in their order: while one is written, the next finds its routes."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Awaitable, Callable

GoOn = Callable[[], Awaitable[None]]
"""Waits for the second stage, and leaves the first to the next batch.

Raises:
    BatchBeforeFailedError: a batch has failed since this one came.
"""


class BatchBeforeFailedError(Exception):
    """The batch before was not written; this one must not overtake it."""


class Stages:
    """Lets one batch at a time into each stage."""

    def __init__(self) -> None:
        self._routing = asyncio.Lock()
        self._writing = asyncio.Lock()
        self._failures = 0

    @property
    def is_writing(self) -> bool:
        """Whether a batch is in the second stage."""
        return self._writing.locked()

    @contextlib.asynccontextmanager
    async def enter(self) -> AsyncIterator[GoOn]:
        """Wait for the first stage. The stage that the batch has come to is left at the end; an error is a failure."""
        async with contextlib.AsyncExitStack() as held:
            await held.enter_async_context(self._routing)
            try:
                yield functools.partial(self._go_on, held, self._failures)
            except BaseException:
                self._failures += 1
                raise

    @contextlib.asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Wait until the batches under way have left; meanwhile none comes in."""
        async with self._routing, self._writing:
            yield

    async def _go_on(self, held: contextlib.AsyncExitStack, failures: int) -> None:
        await self._writing.acquire()
        await held.aclose()
        held.callback(self._writing.release)
        if failures != self._failures:
            raise BatchBeforeFailedError
