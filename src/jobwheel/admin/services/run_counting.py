"""Keeps the counts of days and the statistics of jobs, slice by slice."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.report import SLICE, DayCounts, RunCounts, Slice, day_start, slices_between
from jobwheel.admin.services.live_slices import WRITTEN_WITHIN_MS, LiveSlices, TimeReader
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.settling import Settling, first_in_a_row
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.old_runs import own_retentions
from jobwheel.admin.store.reports import (
    delete_slices,
    load_days,
    load_slices,
    load_totals,
    store_days,
    store_slices,
)
from jobwheel.admin.store.run_counts import SliceCounts, lost_in_slices
from jobwheel.admin.store.settings_table import read_setting, write_setting
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock

DAYS: Final = 3
"""So many days, today the last of them, are counted each minute."""

MOST_DAYS_BACK: Final = 30
"""Further back nothing is made up for after a time without an admin."""

REPORTED_DAY: Final = "reported_day"
"""The last day of which everything before is counted for good."""

COUNTED_TO: Final = "counted_to"
"""The id up to which all runs are in the stored counts: where a process begins that knows nothing of them yet."""

_DAY_MS: Final = 86_400_000
_PLANNED_AHEAD_MS: Final = 60_000
# Slices at once: an hour at first, a day where runs are few.
_USUAL_WIDTH: Final = 6
_MOST_WIDTH: Final = 144
_MANY_AT_ONCE: Final = 100_000
_MOST_RUNS: Final = 1_000_000
_MOST_AGAIN: Final = 12
_RUNS_AGAIN: Final = 100_000
_MOST_CREDIT: Final = 20_000_000


class RunCounting:
    """Counts the runs of the last three days, and what was missed while no admin was there.

    Slices that have not settled are followed from run to run. A settled one is read again when runs in it were removed,
    or got a late result, or appeared late; beside that a few of them each time, as far as a hundred thousand runs for
    each pass reach. What a pass does not come to waits for the next one. Runs that the retention has removed stay
    counted.
    """

    def __init__(
        self, database: Database, clock: Clock, zone: InstallationZone, turn: Turn, retention_days: int = 0
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._turn = turn
        self._retention_days = retention_days
        reads = PacedReads(database, clock)
        self._reader = TimeReader(reads)
        self._live = LiveSlices(reads, zone, self._reader)
        self._settling = Settling(database, reads)
        self._credit = 0

    async def run_once(self) -> None:
        """Count what may have changed, if no other node does."""
        async with self._turn.taken() as mine:
            if mine:
                await self._count()

    async def _count(self) -> None:
        now_ms = self._clock.now()
        today = self._zone.to_wall(now_ms).date()
        slices, settings, own_days = await self._database.read(_load)
        first = _first_day(today, settings[REPORTED_DAY])
        wanted = self._wanted(slices, first, now_ms)
        unsettled = [each for each in wanted if each not in slices or not slices[each].is_settled]
        self._live.keep(set(unsettled), slices)
        counted_to = settings[COUNTED_TO]
        await self._live.follow(now_ms, None if counted_to is None else int(counted_to))
        if not await self._read_unknown(unsettled, slices):
            return
        found = self._live.counts()
        found |= await self._count_again(slices, wanted)
        kept_from = self._kept_from(own_days, now_ms)
        counted = {begins: self._slice(begins, each, slices, kept_from, now_ms) for begins, each in found.items()}
        await self._store(slices, counted)
        slices.update(counted)
        await self._publish(slices, first, today, now_ms)

    def _wanted(self, slices: Mapping[datetime, Slice], first: date, now_ms: int) -> list[datetime]:
        until = self._zone.to_wall(now_ms + _PLANNED_AHEAD_MS)
        wanted = slices_between(day_start(first), until + timedelta(seconds=1))
        # What began before is still to be settled; in an hour that comes twice there are later ones already.
        return wanted + sorted(slices.keys() - set(wanted))

    async def _read_unknown(self, unsettled: Sequence[datetime], slices: Mapping[datetime, Slice]) -> bool:
        """Get to know slices, the newest two before the others; False if the turn is another node's meanwhile."""
        unknown = sorted(each for each in unsettled if each not in self._live)
        return await self._in_rows([*unknown[-2:], *unknown[:-2]], _MOST_RUNS, lambda row: self._live.read(row, slices))

    async def _count_again(
        self, slices: Mapping[datetime, Slice], wanted: Sequence[datetime]
    ) -> dict[datetime, SliceCounts]:
        """Read settled slices anew: those that have changed, then those longest not looked at."""
        settled = [each for each in wanted if each in slices and slices[each].is_settled]
        changed = await self._changed(settled, slices)
        found: dict[datetime, SliceCounts] = {}

        async def read(row: Sequence[datetime]) -> int:
            counted = await self._reader.read(row[0], row[-1] + SLICE)
            found.update({begins: counted.slices.get(begins, SliceCounts()) for begins in row})
            self._live.elsewhere -= set(row)
            return counted.runs

        await self._in_rows(changed, _MOST_RUNS, read)
        await self._in_rows(self._longest_ago(set(settled) - set(changed), slices), _MOST_RUNS, read)
        return found

    async def _changed(self, settled: Sequence[datetime], slices: Mapping[datetime, Slice]) -> list[datetime]:
        with_lost = [each for each in settled if slices[each].lost]
        lost = await self._database.read(lost_in_slices, min(with_lost)) if with_lost else {}
        self._live.elsewhere &= set(settled)
        changed = {each for each in with_lost if lost.get(each, 0) != slices[each].lost}
        changed |= self._live.elsewhere
        changed |= {each for each in settled if slices[each].counted_ms == 0 or slices[each].total.running}
        return sorted(changed)

    def _longest_ago(self, settled: Collection[datetime], slices: Mapping[datetime, Slice]) -> list[datetime]:
        """A few slices, as far as what each pass may read goes; for a large one passes save it up."""
        self._credit = min(self._credit + _RUNS_AGAIN, _MOST_CREDIT)
        chosen = []
        for each in sorted(settled, key=lambda begins: (slices[begins].counted_ms, begins))[:_MOST_AGAIN]:
            if slices[each].total.total > self._credit:
                break
            self._credit -= slices[each].total.total
            chosen.append(each)
        return sorted(chosen)

    async def _in_rows(
        self, slices: Sequence[datetime], most_runs: int, read: Callable[[Sequence[datetime]], Awaitable[int]]
    ) -> bool:
        """Read slices, those that follow one another at once, until that were so many runs; False = not our turn."""
        left, width = list(slices), _USUAL_WIDTH
        while left and most_runs > 0:
            some = first_in_a_row(left, width)
            del left[: len(some)]
            runs = await read(some)
            most_runs -= runs
            width = _next_width(width, runs)
            if left and not await self._turn.keep():
                return False
        return True

    def _kept_from(self, own_days: Collection[int], now_ms: int) -> datetime:
        """From when on the retention has removed no run."""
        days = min((each for each in (self._retention_days, *own_days) if each), default=None)
        return datetime.min if days is None else self._zone.to_wall(max(0, now_ms - days * _DAY_MS))  # noqa: DTZ901

    def _slice(
        self,
        begins: datetime,
        found: SliceCounts,
        slices: Mapping[datetime, Slice],
        kept_from: datetime,
        now_ms: int,
    ) -> Slice:
        before = slices.get(begins, Slice(0, is_settled=False, counts={}))
        counts = found.groups
        if begins < kept_from:
            counts = {
                group_id: counts.get(group_id, RunCounts()).at_least(before.counts.get(group_id, RunCounts()))
                for group_id in counts.keys() | before.counts.keys()
            }
        is_over = self._zone.last_of(begins + SLICE) + WRITTEN_WITHIN_MS <= now_ms
        is_settled = before.is_settled or (is_over and not any(each.running for each in counts.values()))
        return Slice(now_ms, is_settled, counts, found.lost, before.recounts, before.settled_job)

    async def _store(self, before: Mapping[datetime, Slice], counted: Mapping[datetime, Slice]) -> None:
        newest = max(counted, default=None)
        told = {
            begins: each
            for begins, each in counted.items()
            # The newest one tells when it was counted last; of settled ones that orders them.
            if begins == newest or each.is_settled or begins not in before or _differ(each, before[begins])
        }
        # What is still to be seen to elsewhere would be forgotten with this process.
        counted_to = None if self._live.elsewhere else self._live.counted_to
        await self._database.write(_store, told, counted_to)
        await self._settling.settle(
            {
                begins: each
                for begins, each in told.items()
                if each.is_settled and each.counts and not (begins in before and before[begins].is_settled)
            }
        )

    async def _publish(self, slices: Mapping[datetime, Slice], first: date, today: date, now_ms: int) -> None:
        """Write the days of which every slice was counted, where they have changed."""
        last = self._zone.to_wall(now_ms + _PLANNED_AHEAD_MS).date()
        days = [each for each in _days(first, last) if self._is_whole(slices, each, now_ms)]
        counted = [DayCounts(day, _sum_of_day(slices, day)) for day in days]
        changed = await self._database.read(_changed, counted, first, last)
        if changed:
            await self._database.write(store_days, changed, self._zone.to_wall(now_ms))
        if len(days) < (last - first).days + 1:
            return
        await self._close_before(slices, today - timedelta(days=DAYS - 1))
        if await self._database.read(read_setting, REPORTED_DAY) != today.isoformat():
            await self._database.write(write_setting, REPORTED_DAY, today.isoformat())

    async def _close_before(self, slices: Mapping[datetime, Slice], day: date) -> None:
        """Days that are counted no more: whatever is still open in them is left out of the statistics."""
        old = {begins: each for begins, each in slices.items() if begins < day_start(day)}
        await self._settling.settle({begins: each for begins, each in old.items() if not each.is_settled})
        if old:
            await self._database.write(delete_slices, day_start(day))

    def _is_whole(self, slices: Mapping[datetime, Slice], day: date, now_ms: int) -> bool:
        now_wall = self._zone.to_wall(now_ms)
        until = min(day_start(day) + timedelta(days=1), now_wall + timedelta(seconds=1))
        return all(each in slices for each in slices_between(day_start(day), until))


def _first_day(today: date, reported: str | None) -> date:
    """The first day to count: some days back, or the last one that an admin has reported."""
    usual = today - timedelta(days=DAYS - 1)
    if reported is None:
        return usual
    return max(min(usual, date.fromisoformat(reported)), today - timedelta(days=MOST_DAYS_BACK))


def _changed(connection: Connection, counted: list[DayCounts], first: date, last: date) -> list[DayCounts]:
    stored = {each.day: each for each in load_days(connection, first, last)}
    totals = load_totals(connection, first, last)
    return [
        each
        for each in counted
        if each.total != totals.get(each.day) or each.groups != (stored[each.day].groups if each.day in stored else {})
    ]


def _sum_of_day(slices: Mapping[datetime, Slice], day: date) -> dict[GroupId, RunCounts]:
    groups: dict[GroupId, RunCounts] = {}
    for begins, each in slices.items():
        if begins.date() == day:
            for group_id, counts in each.counts.items():
                groups[group_id] = groups.get(group_id, RunCounts()) + counts
    return groups


def _days(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def _load(connection: Connection) -> tuple[dict[datetime, Slice], dict[str, str | None], list[int]]:
    """The slices, how far the counting is, and for how many days jobs keep their runs that say so."""
    settings = {name: read_setting(connection, name) for name in (REPORTED_DAY, COUNTED_TO)}
    return load_slices(connection), settings, list(own_retentions(connection).values())


def _store(connection: Connection, slices: Mapping[datetime, Slice], counted_to: int | None) -> None:
    store_slices(connection, slices)
    if counted_to is not None:
        write_setting(connection, COUNTED_TO, str(counted_to))


def _differ(one: Slice, other: Slice) -> bool:
    return (one.counts, one.lost) != (other.counts, other.lost) or other.counted_ms == 0


def _next_width(width: int, runs: int) -> int:
    """How many slices to read at once next, so that one query never takes long."""
    if runs > _MANY_AT_ONCE:
        return max(1, width // 4)
    return min(width * 4, _MOST_WIDTH) if runs < _MANY_AT_ONCE // 8 else width
