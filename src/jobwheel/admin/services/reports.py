"""Looking at what was counted of the run log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.report import SLICE, DayCounts, RunStatistics, Slice, day_start, slices_between
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.run_counting import DAYS
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.jobs import get_job
from jobwheel.admin.store.reports import load_days, load_slices
from jobwheel.admin.store.statistics import load_statistics, runs_statistics
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock

STATISTICS_DAYS: Final = 31
"""So many days of a job's statistics are kept, today included."""


@dataclass(frozen=True, slots=True)
class DailyReport:
    """Every day asked for, the oldest first, and when they were counted last (epoch milliseconds; None = never)."""

    days: Sequence[DayCounts]
    counted_ms: int | None


class Reports(Scoped):
    """The use cases of reports."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone

    async def daily(self, days: int, group_id: GroupId | None = None) -> DailyReport:
        """The counts of so many days, today the last of them: of all groups, or of one.

        Totals are those of the groups that are shown.
        """
        today = self._today()
        first = today - timedelta(days=days - 1)
        group_ids = self.group_ids
        if group_id is not None:
            group_ids = frozenset() if self.hides(group_id) else frozenset([group_id])
        stored = {each.day: each for each in await self._database.read(load_days, first, today, group_ids)}
        slices = await self._database.read(load_slices)
        every = [first + timedelta(days=n) for n in range(days)]
        counted_ms = max((each.counted_ms for each in slices.values()), default=0)
        return DailyReport([stored.get(day, DayCounts(day, {})) for day in every], counted_ms or None)

    async def of_job(self, job_id: JobId, days: int) -> dict[date, RunStatistics]:
        """The statistics of a job's runs that have ended, by the day on which they were triggered.

        Raises:
            NotFoundError: there is no such job.
        """
        job = await self._database.read(get_job, self._zone, job_id)
        if job is None:
            raise NotFoundError("job", job_id)
        return await self._database.read(self._of_job, job_id, days)

    def _of_job(self, connection: Connection, job_id: JobId, days: int) -> dict[date, RunStatistics]:
        today = self._today()
        first = today - timedelta(days=days - 1)
        found = load_statistics(connection, job_id, first, today)
        # What is not settled is not in there yet: it is looked at now.
        until = self._zone.to_wall(self._clock.now()) + SLICE
        for from_wall, until_wall in _unsettled(load_slices(connection), job_id, first, today, until):
            for new in runs_statistics(connection, from_wall, until_wall, job_id).values():
                found.setdefault(from_wall.date(), RunStatistics(new.group_id)).merge(new)
        return dict(sorted(found.items()))

    def _today(self) -> date:
        return self._zone.to_wall(self._clock.now()).date()


def _unsettled(
    slices: Mapping[datetime, Slice], job_id: JobId, first: date, today: date, until: datetime
) -> list[tuple[datetime, datetime]]:
    """Stretches of wall time, each of one day, in which the job's runs are in no day's statistics."""
    kept_from = min([day_start(today - timedelta(days=DAYS - 1)), *slices])
    stretches: list[tuple[datetime, datetime]] = []
    for begins in slices_between(max(day_start(first), kept_from), until):
        if begins in slices and slices[begins].is_settled_for(job_id):
            continue
        if stretches and stretches[-1][1] == begins and stretches[-1][0].date() == begins.date():
            stretches[-1] = (stretches[-1][0], begins + SLICE)
        else:
            stretches.append((begins, begins + SLICE))
    return stretches
