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
        self.store = store
        self.flown: list[PendingRun] = []
        self.all_flown: list[PendingRun] = []
        self.pieces: list[int] = []
        # Whether sends are behind, and whether they will be as soon as something was claimed.
        self.is_behind = self.falls_behind = False
        limits = ClaimLimits(5.0, most_runs, claimed_ahead_s=claimed_ahead_s)
        parts = (store.database, store.zone, store.clock)
        self.claimer = Claimer(*parts, lambda: NODE, self._fly, limits, self._behind)

    def _fly(self, runs: Sequence[PendingRun]) -> None:
        self.flown += runs
        self.all_flown += runs
        self.pieces.append(len(runs))
        self.is_behind = self.is_behind or self.falls_behind

    def _behind(self) -> bool:
        return self.is_behind

    async def planned(self) -> list[int]:
        self.flown.clear()
        self.pieces.clear()
        assert await self.claimer.run_once() == len(self.flown)
        return [run.planned_ms for run in self.flown]


async def events_of(store: Store, job_id: JobId) -> list[str]:
    return [each.kind for each in await store.database.read(list_job_events, job_id, None, 100)]
