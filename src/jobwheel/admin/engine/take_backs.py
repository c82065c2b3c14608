"""Runs that took off, and of which nothing was written to any executor, become pending again."""

from collections.abc import Iterable, Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.writes import TakeBack
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.store import run_log
from jobwheel.admin.store.database import is_outage
from jobwheel.kernel.buffer import BatchingBuffer
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)


class TakeBacks(Service):
    """Makes runs pending again as soon as the database lets it, however long it is away; the feeder brings them.

    They are held until then: else they would count as sent, and without an answer as lost. A stop waits some seconds
    for the last of them.
    """

    def __init__(self, context: EngineContext) -> None:
        super().__init__("take_backs", context.clock)
        self._context = context
        self._held: set[RunId] = set()
        # A take-back of which nobody knows whether it was committed can be made again: see `run_log.take_back`.
        self._buffer = BatchingBuffer[TakeBack](
            self.name, self._flush, self._reject, context.clock, is_outage=is_outage
        )

    def holds(self, run_id: RunId) -> bool:
        """Whether the run is to become pending again, and has not yet."""
        return run_id in self._held

    def add(self, takes: Iterable[TakeBack]) -> None:
        """Take these back. Never waits; call from the loop's own thread."""
        for each in takes:
            self._held.add(each.run_id)
            self._buffer.add(each)

    async def on_start(self) -> None:
        await self._buffer.start()

    async def on_stop(self) -> None:
        await self._buffer.stop()

    async def _flush(self, takes: Sequence[TakeBack]) -> None:
        await self._context.database.write(run_log.take_back, takes)
        self._held.difference_update([each.run_id for each in takes])

    def _reject(self, take: TakeBack, error: Exception) -> None:
        # The recovery finds it in sending.
        self._held.discard(take.run_id)
        log.error("take_backs.failed", run_id=take.run_id, error=repr(error))
