"""The one writer of the run log: dispatch answers and results of this process, in batches."""

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from jobwheel.admin.domain.writes import RunWrite
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.store import run_log
from jobwheel.admin.store.database import is_outage
from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)

_MOST_WRITES = 1000
_MOST_WAIT_S = 0.003


class _Receipt:
    """What somebody waits for who gave several writes: one word when the last of them is written, or could not be."""

    __slots__ = ("_error", "_open", "done")

    def __init__(self, count: int) -> None:
        self._open = count
        self._error: Exception | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def note(self, error: Exception | None = None) -> None:
        """One of the writes is over."""
        self._error = self._error or error
        self._open -= 1
        if self._open or self.done.done():
            return
        if self._error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(self._error)


class _Entry(msgspec.Struct, frozen=True):
    write: RunWrite
    receipt: _Receipt | None


class RunLogWriter(Service):
    """Two concurrent batch updates of the same rows deadlock on servers; so there is one writer for both kinds.

    `rescheduled` is called after a commit that gave a FIX_DELAY job its next time, `called` after one that made this
    node the owner of runs that had waited for room.
    """

    def __init__(self, context: EngineContext, rescheduled: Callable[[], None], called: Callable[[], None]) -> None:
        super().__init__("run_log_writer", context.clock)
        self._context = context
        self._rescheduled = rescheduled
        self._called = called
        self._buffer = BatchingBuffer[_Entry](
            "run_log",
            self._flush,
            self._reject,
            context.clock,
            BufferLimits(most_items=_MOST_WRITES, most_wait_s=_MOST_WAIT_S),
            is_outage,
        )

    def __len__(self) -> int:
        """How many writes wait."""
        return len(self._buffer)

    def add(self, write: RunWrite) -> None:
        """Write this with the next batch. A write that cannot be made is logged; recovery finds its run."""
        self._buffer.add(_Entry(write, None))

    async def write_all(self, writes: Sequence[RunWrite]) -> None:
        """Return once all of these are committed.

        Raises:
            Exception: what the database said of the first that could not be written; the others are.
        """
        if not writes:
            return
        receipt = _Receipt(len(writes))
        for write in writes:
            self._buffer.add(_Entry(write, receipt))
        await receipt.done

    async def on_start(self) -> None:
        await self._buffer.start()

    async def on_stop(self) -> None:
        await self._buffer.stop()

    async def _flush(self, entries: Sequence[_Entry]) -> None:
        context = self._context
        writes = [entry.write for entry in entries]
        applied = await context.database.write_batch(run_log.apply, context.zone, context.node.id, writes)
        for entry in entries:
            if entry.receipt is not None:
                entry.receipt.note()
        # Of those that matched: repeats of a result end nothing.
        context.counters.ended(each.outcome for each in applied.ended)
        if applied.rescheduled:
            self._rescheduled()
        if applied.called:
            self._called()

    def _reject(self, entry: _Entry, error: Exception) -> None:
        log.error(
            "run_log.write_failed", run_id=entry.write.run_id, write=type(entry.write).__name__, error=repr(error)
        )
        if entry.receipt is not None:
            entry.receipt.note(error)
