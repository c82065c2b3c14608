"""Removes what is older than it is to be kept, in small slices with pauses, so that no run is sent later for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.services.reports import STATISTICS_DAYS
from jobwheel.admin.services.slices import PAUSE_S, Slices
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.old_runs import (
    Stretch,
    delete_done,
    delete_events,
    delete_sessions,
    old_runs,
    old_runs_of_job,
    own_retentions,
)
from jobwheel.admin.store.statistics import delete_statistics
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_DAY_MS: Final = 86_400_000
_TURN_EACH_S: Final = 5.0
_PASS_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class KeptDays:
    """For how many days what is kept; 0 = for ever. Sessions are counted from their end."""

    runs: int = 30
    events: int = 365
    sessions: int = 7


class Retention:
    """Removes runs that are done, events, sessions that are over, and old statistics.

    Any node does it, one at a time. A pass goes on for five minutes at most; the next one goes on where it ended, and
    one on another node, or after a restart, from the oldest run on. Once a day every pass begins there: of what was
    passed over, some may be done now, or be of a job whose own time has changed.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        zone: InstallationZone,
        kept: KeptDays,
        turn: Turn,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._kept = kept
        self._turn = turn
        self._slices = Slices(database, pause_s)
        self._after: tuple[datetime, int] | None = None
        self._began_ms = 0
        self._until_s = 0.0
        self._kept_turn_s = 0.0

    async def run_once(self) -> int:
        """Remove what is due, if no other node does; says how many rows."""
        async with self._turn.taken() as mine:
            if not mine:
                return 0
            self._kept_turn_s = self._clock.monotonic()
            self._until_s = self._kept_turn_s + _PASS_S
            runs = await self._remove_runs()
            others = await self._remove_others()
        if runs or others:
            log.info("retention.removed", runs=runs, others=others)
        return runs + others

    async def _remove_runs(self) -> int:
        own = await self._database.read(own_retentions)
        removed = 0
        if self._kept.runs:
            removed += await self._sweep(self._days_ago(self._kept.runs), frozenset(own))
        for job_id, days in sorted(own.items()):
            if days:
                removed += await self._sweep_job(job_id, self._days_ago(days))
        return removed

    async def _sweep(self, before: datetime, without: frozenset[JobId]) -> int:
        now_ms = self._clock.now()
        if not 0 <= now_ms - self._began_ms < _DAY_MS:
            self._began_ms, self._after = now_ms, None
        removed = 0
        while await self._may_go_on():
            found = await self._database.read(old_runs, before, self._after, without, self._slices.size)
            removed += await self._remove(found)
            # What was removed need not be passed over: the next pass may begin where this one did.
            self._after = found.last or self._after
            if found.is_last:
                break
        return removed

    async def _sweep_job(self, job_id: JobId, before: datetime) -> int:
        removed, after_id = 0, 0
        while await self._may_go_on():
            found = await self._database.read(old_runs_of_job, job_id, before, after_id, self._slices.size)
            removed += await self._remove(found)
            if found.is_last or found.last is None:
                break
            after_id = found.last[1]
        return removed

    async def _remove(self, found: Stretch) -> int:
        if not found.run_ids:
            return 0
        removed = await self._slices.change(len(found.run_ids), delete_done, found.run_ids)
        await self._slices.rest()
        return removed

    async def _remove_others(self) -> int:
        removed = 0
        for work, before in self._others().items():
            while await self._may_go_on():
                most = self._slices.size
                slice_removed = await self._slices.change(most, work, before, most)
                removed += slice_removed
                if slice_removed < most:
                    break
                await self._slices.rest()
        return removed

    def _others(self) -> Mapping[Callable[[Connection, object, int], int], object]:
        now_ms = self._clock.now()
        today = self._zone.to_wall(now_ms).date()
        others: dict[Callable[..., int], object] = {
            delete_statistics: today - timedelta(days=STATISTICS_DAYS - 1),
        }
        if self._kept.events:
            others[delete_events] = now_ms - self._kept.events * _DAY_MS
        if self._kept.sessions:
            others[delete_sessions] = now_ms - self._kept.sessions * _DAY_MS
        return others

    def _days_ago(self, days: int) -> datetime:
        return self._zone.to_wall(max(0, self._clock.now() - days * _DAY_MS))

    async def _may_go_on(self) -> bool:
        """Whether the pass is not over, and the turn still this node's."""
        now_s = self._clock.monotonic()
        if now_s >= self._until_s:
            return False
        if now_s - self._kept_turn_s >= _TURN_EACH_S:
            self._kept_turn_s = now_s
            return await self._turn.keep()
        # Reads that find nothing to remove come one after the other: others get their turn in between.
        await self._clock.wait(0)
        return True
