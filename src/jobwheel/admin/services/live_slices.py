"""The slices that are not settled, followed from run to run: each run is read once, and again while it may change."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from jobwheel.admin.domain.report import SLICE, Slice
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.store.run_counts import (
    Counted,
    Edges,
    SliceCounts,
    count_among,
    count_by_id,
    count_in_time,
    find_edges,
)
from jobwheel.admin.store.zone import InstallationZone

WRITTEN_WITHIN_MS: Final = 120_000
"""A run may be written so long after the second that it was triggered at, by a claim that waits for its commit."""

# By then most runs have ended: what is counted for good is hardly looked at a second time.
_NEARLY_ENDED_MS: Final = 15_000
_AT_ONCE: Final = 100_000
_MOST_BEHIND: Final = 5_000_000
_SHORTEST: Final = timedelta(minutes=1)
_LONGEST: Final = timedelta(days=1)


class TimeReader:
    """Counts runs by their trigger time, in queries none of which takes long; it remembers how far one reaches."""

    def __init__(self, reads: PacedReads) -> None:
        self._reads = reads
        self._width = SLICE

    async def read(self, from_wall: datetime, until_wall: datetime, up_to_id: int | None = None) -> Counted:
        """Count the runs of a stretch of wall time; with a bound, those of ids up to it."""
        found, at = Counted(), from_wall
        while at < until_wall:
            until = min(at + self._width, until_wall)
            part = await self._reads.read(count_in_time, at, until, up_to_id)
            found.add(part)
            at = until
            if part.runs > _AT_ONCE:
                self._width = max(_SHORTEST, self._width / 4)
            elif part.runs < _AT_ONCE // 8:
                self._width = min(self._width * 4, _LONGEST)
        return found


class LiveSlices:
    """What this process knows of slices that are not settled.

    Runs are followed by their ids: those up to one are counted for good when they have ended, and are held by their ids
    until then; those after it are counted anew each time. All of it is in memory and follows from the log, so nothing
    is lost with it: a slice that is not known is read once by the trigger time.
    """

    def __init__(self, reads: PacedReads, zone: InstallationZone, reader: TimeReader) -> None:
        self._reads = reads
        self._zone = zone
        self._reader = reader
        self.counted_to: int | None = None
        """The id up to which the runs are counted for good."""
        self._slices: dict[datetime, SliceCounts] = {}
        self._recounts: dict[datetime, int] = {}
        self._newest = Counted()
        self.elsewhere: set[datetime] = set()
        """Slices that are not known, in which runs have appeared or changed. Whoever has seen to one takes it out."""

    def __contains__(self, begins: datetime) -> bool:
        return begins in self._slices

    def forget(self) -> None:
        """Know nothing any more."""
        self.counted_to = None
        self._slices, self._recounts, self._newest = {}, {}, Counted()

    def keep(self, unsettled: Collection[datetime], stored: Mapping[datetime, Slice]) -> None:
        """Forget all other slices, and those in which runs were removed since they were read."""
        for begins in list(self._slices):
            recounts = stored[begins].recounts if begins in stored else 0
            if begins not in unsettled or recounts != self._recounts[begins]:
                del self._slices[begins], self._recounts[begins]

    async def follow(self, now_ms: int, counted_to: int | None = None) -> None:
        """See what came, and what became of the runs that might change.

        `counted_to` is where to begin without knowing anything: who knew the runs up to there has written it down.
        """
        try:
            await self._follow(now_ms, counted_to)
        except BaseException:
            # Half of it may be counted.
            self.forget()
            raise

    async def read(self, row: Sequence[datetime], stored: Mapping[datetime, Slice]) -> int:
        """Get to know slices that follow one another; says how many runs that took. Follow the runs before."""
        found = await self._reader.read(row[0], row[-1] + SLICE, self.counted_to)
        for begins in row:
            self._slices[begins] = found.slices.get(begins, SliceCounts())
            self._recounts[begins] = stored[begins].recounts if begins in stored else 0
        return found.runs

    def counts(self) -> dict[datetime, SliceCounts]:
        """All that is known, as it was followed last."""
        counts = {}
        for begins, known in self._slices.items():
            every = SliceCounts()
            every.add(known)
            every.add(self._newest.slices.get(begins, SliceCounts()))
            counts[begins] = every
        return counts

    async def _follow(self, now_ms: int, counted_to: int | None) -> None:
        old_wall, recent_wall = (
            self._zone.to_wall(max(0, now_ms - ago_ms)) for ago_ms in (WRITTEN_WITHIN_MS, _NEARLY_ENDED_MS)
        )
        edges = await self._reads.read(find_edges, old_wall, recent_wall)
        if not _leads_on(self.counted_to, edges):
            self.forget()
            known = counted_to if counted_to is not None and _leads_on(counted_to, edges) else edges.old
            self.counted_to = min(edges.old, known)
        await self._look_at_open()
        await self._advance(edges.old, with_gaps=True)
        await self._advance(edges.recent, with_gaps=False)
        self._newest = await self._reads.read(count_by_id, self.counted_to or 0)
        self.elsewhere |= self._newest.slices.keys() - self._slices.keys()

    async def _look_at_open(self) -> None:
        run_ids = sorted(run_id for known in self._slices.values() for run_id in known.open_ids)
        found = await self._reads.read(count_among, run_ids) if run_ids else Counted()
        for known in self._slices.values():
            known.open, known.open_ids = {}, []
        self._add(found)

    async def _advance(self, to_id: int, *, with_gaps: bool) -> None:
        """Count the runs up to an id for good. Where one is missing, a transaction that goes on may still bring it."""
        at = self.counted_to or 0
        while at < to_id:
            until = min(at + _AT_ONCE, to_id)
            found = await self._reads.read(count_by_id, at, until)
            if not with_gaps and found.runs < until - at:
                return
            self._add(found)
            self.counted_to = at = until

    def _add(self, found: Counted) -> None:
        for begins, counts in found.slices.items():
            if begins in self._slices:
                self._slices[begins].add(counts)
            else:
                self.elsewhere.add(begins)


def _leads_on(counted_to: int | None, edges: Edges) -> bool:
    """Whether to go on from there: it is not too far behind, nor do ids begin anew since, as in an emptied table."""
    return counted_to is not None and edges.recent - _MOST_BEHIND <= counted_to <= edges.newest
