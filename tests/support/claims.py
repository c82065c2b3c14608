"""A claimer whose runs are caught, and the events of a job."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.claim import ClaimLimits
from jobwheel.admin.engine.claimer import Claimer
from jobwheel.admin.store.events import list_job_events
from tests.support.store import Store

NODE = NodeId(1)


class Claims:
    """A claimer whose runs are caught."""

    def __init__(self, store: Store, most_runs: int = 1000, claimed_ahead_s: float = 5.0) -> None:
        self.flown: list[PendingRun] = []
        limits = ClaimLimits(5.0, most_runs, claimed_ahead_s=claimed_ahead_s)
        self.claimer = Claimer(store.database, store.zone, store.clock, lambda: NODE, self._fly, limits)

    def _fly(self, runs: Sequence[PendingRun]) -> None:
        self.flown += runs

    async def planned(self) -> list[int]:
        self.flown.clear()
        assert await self.claimer.run_once() == len(self.flown)
        return [run.planned_ms for run in self.flown]


async def events_of(store: Store, job_id: JobId) -> list[str]:
    return [each.kind for each in await store.database.read(list_job_events, job_id, None, 100)]
