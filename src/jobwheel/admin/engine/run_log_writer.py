"""The one writer of the run log: dispatch answers and results of this process, in batches."""

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Sequence

import msgspec

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.domain.writes import Accepted, RunWrite, Settlement
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.early_answers import EarlyAnswers
from jobwheel.admin.store import run_log
from jobwheel.admin.store.database import is_outage
from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)

_MOST_WRITES = 1000
_MOST_WAIT_S = 0.003
_FAR_BEHIND = 5 * _MOST_WRITES
_LOOK_EVERY_S = 0.01
_FULL_FOR_S = 0.3


class _Receipt:
    """What somebody waits for who gave several writes: one word when the last of them is written, or could not be.

    `done` gives the runs that the writes did not end.
    """

    __slots__ = ("_error", "_idle", "_open", "done")

    def __init__(self, count: int) -> None:
        self._open = count
        self._error: Exception | None = None
        self._idle: list[RunId] = []
        self.done: asyncio.Future[list[RunId]] = asyncio.get_running_loop().create_future()

    def note_written(self, run_id: RunId, ended: Container[RunId]) -> None:
        """One of the writes is made; `ended` are the runs that its batch ended."""
        if run_id not in ended:
            self._idle.append(run_id)
        self._note()

    def note_failed(self, error: Exception) -> None:
        """One of the writes cannot be made."""
        self._error = self._error or error
        self._note()

    def _note(self) -> None:
        self._open -= 1
        if self._open or self.done.done():
            return
        if self._error is None:
            self.done.set_result(self._idle)
        else:
            self.done.set_exception(self._error)


class _Entry(msgspec.Struct):
    """A write, and who waits for it. Whether an early one is made is seen when its turn comes, once for all tries."""

    write: RunWrite
    receipt: _Receipt | None = None
    early: bool = False
    is_void: bool = False


class RunLogWriter(Service):
    """Two concurrent batch updates of the same rows deadlock on servers; so there is one writer for both kinds.

    `rescheduled` is called after a commit that gave a FIX_DELAY job its next time, `called` after one that made this
    node the owner of runs that had waited for room. `fly` gets the retries and children that a commit made and that
    come due within the look-ahead; the others the feeder brings when it is their time.
    """

    def __init__(
        self,
        context: EngineContext,
        rescheduled: Callable[[], None],
        called: Callable[[], None],
        fly: Callable[[Sequence[PendingRun]], None],
    ) -> None:
        super().__init__("run_log_writer", context.clock)
        self._context = context
        self._rescheduled = rescheduled
        self._called = called
        self._fly = fly
        self._buffer = BatchingBuffer[_Entry](
            "run_log",
            self._flush,
            self._reject,
            context.clock,
            BufferLimits(most_items=_MOST_WRITES, most_wait_s=_MOST_WAIT_S),
            is_outage,
        )
        self._answers = EarlyAnswers(self._add_answer, context.clock, self._is_behind)
        self._full_s = -_FULL_FOR_S
        self._waiting: Counter[RunId] = Counter()

    def __len__(self) -> int:
        """How many writes wait."""
        return len(self._buffer) + len(self._answers)

    async def catch_up(self) -> None:
        """Return once it is not far behind: before that, whoever sends more only makes it later with all of it."""
        while len(self) >= _FAR_BEHIND:
            await self.clock.wait(_LOOK_EVERY_S)

    def holds(self, run_id: RunId) -> bool:
        """Whether what came of the run is still to be written."""
        return run_id in self._waiting or self._answers.keeps(run_id)

    def add(self, write: RunWrite) -> None:
        """Write this with the next batch. A write that cannot be made is logged; recovery finds its run.

        A yes may wait a moment longer, for the run's result.
        """
        if isinstance(write, Accepted):
            self._answers.keep(write)
        else:
            self._answers.write_out(write.run_id)
            self._put(_Entry(write))

    async def write_all(self, writes: Sequence[RunWrite]) -> list[RunId]:
        """Return once all of these are committed: the runs that they did not end, as they had ended, or are not there.

        Raises:
            DatabaseUnusableError: the database takes no writes, and many wait for it already: as long as nobody is told
                when theirs are written, executors send theirs again and again.
            Exception: what the database said of the first that could not be written; the others are.
        """
        if not writes:
            return []
        if self._buffer.waits_out_outage and len(self) >= _MOST_WRITES:
            raise DatabaseUnusableError(self._context.database.where, f"{len(self)} writes wait already until it can")
        receipt = _Receipt(len(writes))
        for write in writes:
            self._put(_Entry(self._with_answer(write), receipt))
        return await receipt.done

    async def on_start(self) -> None:
        await self._buffer.start()
        await self._answers.start()

    async def on_stop(self) -> None:
        await self._answers.stop()
        await self._buffer.stop()

    def _add_answer(self, answer: Accepted, *, early: bool) -> None:
        self._put(_Entry(answer, early=early))

    def _put(self, entry: _Entry) -> None:
        self._waiting[entry.write.run_id] += 1
        self._buffer.add(entry)

    def _is_behind(self) -> bool:
        """Whether batches were full a moment ago, of other writes than early answers for the most part."""
        return len(self._buffer) >= _MOST_WRITES or self.clock.monotonic() - self._full_s < _FULL_FOR_S

    def _with_answer(self, write: RunWrite) -> RunWrite:
        answer = self._answers.take(write.run_id) if isinstance(write, Settlement) else None
        return write if answer is None else msgspec.structs.replace(write, accepted=answer)

    async def _flush(self, entries: Sequence[_Entry]) -> None:
        writes = self._due(entries)
        if writes:
            await self._write(entries, writes)
        for entry in entries:
            self._let_go(entry.write.run_id)

    def _let_go(self, run_id: RunId) -> None:
        # Another write of the same run may still wait.
        self._waiting[run_id] -= 1
        if not self._waiting[run_id]:
            del self._waiting[run_id]

    async def _write(self, entries: Sequence[_Entry], writes: Sequence[RunWrite]) -> None:
        context = self._context
        node_id, language = context.node.id, context.messages.language
        # Other nodes plan, and this one still gets results.
        fast_ms = int(context.node.clock_difference_s * 1000) if context.node.clock_is_off else 0
        applied = await context.database.write_batch(run_log.apply, context.zone, node_id, writes, language, fast_ms)
        ended = {each.run_id for each in applied.ended}
        for entry in entries:
            if entry.receipt is not None:
                entry.receipt.note_written(entry.write.run_id, ended)
        # Of those that matched: repeats of a result end nothing.
        context.counters.ended(each.outcome for each in applied.ended)
        if applied.rescheduled:
            self._rescheduled()
        if applied.called:
            self._called()
        if applied.pending and node_id == context.node.id:
            horizon_ms = context.clock.now() + int(context.limits.look_ahead_s * 1000)
            self._fly([run for run in applied.pending if run.due_ms <= horizon_ms])

    def _due(self, entries: Sequence[_Entry]) -> Sequence[RunWrite]:
        """What is to be written of them: an early answer may have gone with its run's result."""
        early = [entry for entry in entries if entry.early]
        if len(entries) == _MOST_WRITES and len(early) < _MOST_WRITES // 2:
            self._full_s = self.clock.monotonic()
        for entry in early:
            entry.early = False
            entry.is_void = isinstance(entry.write, Accepted) and not self._answers.begin(entry.write)
        return [entry.write for entry in entries if not entry.is_void]

    def _reject(self, entry: _Entry, error: Exception) -> None:
        self._let_go(entry.write.run_id)
        log.error(
            "run_log.write_failed", run_id=entry.write.run_id, write=type(entry.write).__name__, error=repr(error)
        )
        if entry.receipt is not None:
            entry.receipt.note_failed(error)
