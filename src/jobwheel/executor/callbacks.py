"""Takes results from the spool to an admin."""

import asyncio
import re
from typing import Final, Protocol

from jobwheel.executor.dead_letters import DeadLetters, Refusals
from jobwheel.executor.disk_threads import DiskThreads
from jobwheel.executor.errors import AdminRefusedError
from jobwheel.executor.ledger import RunKey, RunLedger
from jobwheel.executor.spool import Spool
from jobwheel.executor.spool_segment import SpoolBatch
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import Envelope, Result

log = get_logger(__name__)

MOST_PER_BATCH: Final = 200
MOST_BATCH_BYTES: Final = 512 * 1024
_ADOPT_S: Final = 60.0
_SYNC_S: Final = 0.1
_GATHER_S: Final = 0.025
_ROUNDS_AT_STOP: Final = 3
_MOST_SINGLED_OUT: Final = 3
_SLOW_S: Final = 1.0
# How admins of ours name a bad item in a reply that is a success.
_BAD_ITEM: Final = re.compile(r"item (\d+): ([^;]+)")


class ResultReceiver(Protocol):
    """Where results go: the admins, behind their client."""

    async def callback(self, admin: str, results: list[Result]) -> Envelope:
        """Hand results to one admin; returns once it has them for good.

        Raises:
            UnreachableError, UncertainError, AdminRefusedError: it has not, or perhaps has; they may be sent again.
        """
        ...


class CallbackSender(Service):
    """Sends the oldest results in a batch to the first admin that answers success; only then are they deleted.

    The admin that answered last is asked first, unless it took more than a second: then the others are. A batch that
    none took is tried again after a back-off, and is made smaller: a slow admin gets less at once, and one result that
    an admin chokes on is found. Such a one goes to the end of the spool, so that the others do not wait for it. A
    result that an admin names as bad in an answer that is a success, or that is hopeless (see `Refusals`), becomes a
    dead letter.

    The spool and the dead letters are touched in a thread of its own: the loop never waits for the disk. It is not
    started again after a stop.
    """

    def __init__(
        self,
        spool: Spool,
        ledger: RunLedger,
        admin: ResultReceiver,
        admins: tuple[str, ...],
        letters: DeadLetters,
        clock: Clock,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__("executor.callbacks", clock)
        self._spool = spool
        self._ledger = ledger
        self._admin = admin
        self._admins = list(admins)
        self._letters = letters
        self._refusals = Refusals(clock)
        self._backoff = backoff or Backoff(first_s=0.2, most_s=30.0, jitter=0.2)
        self._some = asyncio.Event()
        self._unsynced = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._hurry = asyncio.Event()
        self._drained = asyncio.Event()
        self._most = MOST_PER_BATCH
        self._failures = 0
        self._put_back: set[RunKey] = set()
        self._stopping = False
        self._disk = DiskThreads("jobwheel-results", 1)
        self._delivered_last: SpoolBatch | None = None

    async def on_start(self) -> None:
        self._stopping = False
        self._some.set()
        self.supervise("send", self._send_loop)
        self.supervise("sync", self._sync_loop)
        self.supervise("adopt", self._adopt_loop)

    async def on_stop(self) -> None:
        await self.cancel("send")
        self._disk.close()

    def notify(self) -> None:
        """There is a new result. Call from the loop's own thread."""
        self._some.set()
        self._unsynced.set()

    def retry_now(self) -> None:
        """Do not wait for the back-off: an admin has just answered. Call from the loop's own thread."""
        if self._failures:
            self._retry_now.set()

    async def flush(self, timeout_s: float) -> None:
        """Send what there is; give up when the time is over or no admin answers several times running.

        What could not be sent stays in the spool for the next start.
        """
        self._stopping = True
        self._failures = 0
        self._drained.clear()
        self._retry_now.set()
        self._hurry.set()
        self._some.set()
        await self.clock.wait(timeout_s, self._drained)
        await self.cancel("send")
        # In the thread of the batches, one of which may still be looked for: nothing is put away twice.
        await self._disk.do(self._put_away)
        await asyncio.to_thread(self._spool.sync)
        if left := self._spool.pending:
            log.warning("callback.left_for_next_start", results=left)

    async def _send_loop(self) -> None:
        while True:
            self._some.clear()
            batch = await self._disk.do(self._next_batch)
            if batch is not None:
                await self._send(batch)
                await self._gather(batch)
            elif not self._some.is_set():
                # Nothing has come while that was looked for, nor has anybody asked to hear that nothing is left.
                self._drained.set()
                await self._some.wait()

    def _next_batch(self) -> SpoolBatch | None:
        """What is to be sent next. The batch before is put away with it: a change of threads costs as much as a run."""
        self._put_away()
        return self._spool.read(self._most, MOST_BATCH_BYTES)

    def _put_away(self) -> None:
        delivered, self._delivered_last = self._delivered_last, None
        if delivered is not None:
            self._spool.done(delivered)

    async def _gather(self, batch: SpoolBatch) -> None:
        """Let more come together if results come faster than they are sent, one request for each costs most of all.

        A result that comes while nothing is being sent is sent at once, and a backlog without any pause.
        """
        is_short = len(batch.results) < self._most
        waiting = self._spool.pending - (len(batch.results) if self._delivered_last is batch else 0)
        if is_short and not self._failures and not self._stopping and 0 < waiting < self._most:
            self._hurry.clear()
            await self.clock.wait(_GATHER_S, self._hurry)

    async def _adopt_loop(self) -> None:
        """Look for what processes that are gone have left, also while there is always something to send."""
        while True:
            await self.clock.wait(_ADOPT_S)
            if await asyncio.to_thread(self._spool.adopt):
                self._some.set()

    async def _send(self, batch: SpoolBatch) -> None:
        if not batch.results or await self._delivered(batch):
            self._delivered_last = batch
            self._ledger.report([(result.log_id, result.log_date_time) for result in batch.results])
            return
        self._failures += 1
        if self._stopping and self._failures >= _ROUNDS_AT_STOP:
            self._drained.set()
        await self._pause()

    async def _pause(self) -> None:
        delay_s = self._backoff.delay_s(self._failures)
        if not 0 < len(self._put_back) <= _MOST_SINGLED_OUT:
            self._retry_now.clear()
            await self.clock.wait(delay_s, self._retry_now)
        elif self._spool.pending <= len(self._put_back):
            # Only what was refused is left: new results need not wait for it.
            self._some.clear()
            await self.clock.wait(delay_s, self._some)

    async def _delivered(self, batch: SpoolBatch) -> bool:
        """Try each admin in turn. True once one has the batch."""
        refusals: list[AdminRefusedError] = []
        uncertain = False
        for admin in list(self._admins):
            began_s = self.clock.monotonic()
            try:
                envelope = await self._admin.callback(admin, batch.results)
            except UnreachableError as error:
                self._report_failure(admin, error)
            except UncertainError as error:
                uncertain = True
                self._report_failure(admin, error)
            except AdminRefusedError as error:
                refusals += [error] if error.readable else []
                self._report_failure(admin, error)
            else:
                await self._succeeded(admin, batch, envelope.msg)
                self._reorder(admin, slow=self.clock.monotonic() - began_s > _SLOW_S)
                return True
        if await self._is_hopeless(batch, refusals):
            return True
        await self._make_smaller(batch, refused=bool(refusals), uncertain=uncertain)
        return False

    async def _is_hopeless(self, batch: SpoolBatch, refusals: list[AdminRefusedError]) -> bool:
        if len(batch.results) != 1 or len(refusals) < len(self._admins):
            return False
        (result,) = batch.results
        key = (result.log_id, result.log_date_time)
        if not self._refusals.is_hopeless(key):
            return False
        self._put_back.discard(key)
        await self._disk.do(self._letters.add, result, refusals[-1].url, refusals[-1].reason)
        return True

    async def _succeeded(self, admin: str, batch: SpoolBatch, message: str | None) -> None:
        if self._failures:
            log.info("callback.regained", admin=admin, waiting=self._spool.pending)
        self._failures = 0
        self._put_back.clear()
        self._most = min(MOST_PER_BATCH, self._most * 2)
        self._refusals.accepted([(result.log_id, result.log_date_time) for result in batch.results])
        if not message or message.lower() == "success":
            return
        named = {int(number): reason for number, reason in _BAD_ITEM.findall(message)}
        for number, result in enumerate(batch.results):
            if number in named:
                await self._disk.do(self._letters.add, result, admin, named[number])
        if not named:
            log.warning("callback.answered_with_message", admin=admin, results=len(batch.results), message=message)

    def _reorder(self, admin: str, *, slow: bool) -> None:
        """Ask this one first the next time, or last if it was slow."""
        if self._admins[0] != admin or slow:
            self._admins.remove(admin)
            self._admins.insert(len(self._admins) if slow else 0, admin)

    def _report_failure(self, admin: str, error: Exception) -> None:
        report = log.warning if self._failures == 0 else log.debug
        report("callback.failed", admin=admin, error=str(error), waiting=self._spool.pending)

    async def _make_smaller(self, batch: SpoolBatch, *, refused: bool, uncertain: bool) -> None:
        if refused and len(batch.results) == 1:
            await self._move_back(batch)
        elif refused or uncertain:
            self._most = max(1, len(batch.results) // 2)

    async def _move_back(self, batch: SpoolBatch) -> None:
        (result,) = batch.results
        # The keys tell one bad result from an admin that refuses everything; more of them would tell nothing more.
        if len(self._put_back) <= _MOST_SINGLED_OUT:
            self._put_back.add((result.log_id, result.log_date_time))
        report = log.warning if self._failures == 0 else log.debug
        report("callback.put_back", log_id=result.log_id, reason="no admin takes it at the moment")
        if self._spool.pending > 1:
            await self._disk.do(self._spool.move_to_end, batch)

    async def _sync_loop(self) -> None:
        while True:
            await self._unsynced.wait()
            await self.clock.wait(_SYNC_S)
            self._unsynced.clear()
            # Most results are with an admin by now; only those that are not are worth a slow write.
            if self._spool.pending:
                await asyncio.to_thread(self._spool.sync)
