"""Slices that settle: their runs go into the statistics of their jobs, each once."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import takewhile
from typing import Final

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.report import SLICE, RunStatistics, Slice
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.slices import PAUSE_S, Slices
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.statistics import runs_statistics, settle_with_statistics

_MOST_AT_ONCE: Final = 250_000
_SHORTEST: Final = timedelta(minutes=1)
_A_DAY: Final = 144


class Settling:
    """Settles slices: those that follow one another on a day at once, some jobs at a time.

    How far it is stands in the slices: whoever goes on with them after a crash begins there.
    """

    def __init__(self, database: Database, reads: PacedReads, pause_s: float = PAUSE_S) -> None:
        self._reads = reads
        self._parts = Slices(database, pause_s)

    async def settle(self, slices: Mapping[datetime, Slice]) -> None:
        """Settle those of the slices that are not; nodes that do so at once count no run twice."""
        left = sorted(slices)
        while left:
            some = _alike(first_in_a_row(left, _A_DAY), slices)
            del left[: len(some)]
            if not await self._settle(some, slices) and len(some) > 1:
                # Another node has settled one of them.
                for each in some:
                    await self._settle([each], slices)

    async def _settle(self, some: Sequence[datetime], slices: Mapping[datetime, Slice]) -> bool:
        runs = sum(slices[each].total.total for each in some)
        statistics = await self._read(some[0], some[-1] + SLICE, runs)
        after = slices[some[0]].settled_job
        job_ids = sorted(job_id for job_id in statistics if job_id > after)
        while True:
            most = self._parts.size
            part, job_ids = job_ids[:most], job_ids[most:]
            of_part = {job_id: statistics[job_id] for job_id in part}
            until = part[-1] if job_ids else None
            if not await self._parts.change(len(part), settle_with_statistics, some, of_part, after, until):
                return False
            if until is None:
                return True
            after = until
            await self._parts.rest()

    async def _read(self, from_wall: datetime, until_wall: datetime, runs: int) -> dict[JobId, RunStatistics]:
        """The statistics of a stretch of wall time, in queries none of which takes long."""
        width = (until_wall - from_wall) / max(1, runs / _MOST_AT_ONCE)
        whole_s = timedelta(seconds=max(_SHORTEST, width) // timedelta(seconds=1))
        found: dict[JobId, RunStatistics] = {}
        at = from_wall
        while at < until_wall:
            until = min(at + whole_s, until_wall)
            for job_id, some in (await self._reads.read(runs_statistics, at, until)).items():
                found.setdefault(job_id, RunStatistics(some.group_id)).merge(some)
            at = until
        return found


def _alike(some: Sequence[datetime], slices: Mapping[datetime, Slice]) -> list[datetime]:
    """The first of them that are of one day, and settled up to the same job."""

    def kind(begins: datetime) -> tuple[date, JobId]:
        return begins.date(), slices[begins].settled_job

    return list(takewhile(lambda each: kind(each) == kind(some[0]), some))


def first_in_a_row(slices: Sequence[datetime], most: int) -> list[datetime]:
    """The first slices, as long as each begins where the one before ends."""
    row = list(slices[:1])
    while len(row) < min(most, len(slices)) and slices[len(row)] == row[-1] + SLICE:
        row.append(slices[len(row)])
    return row
