"""Cleaning the run log up because a person asked for it: the asking, and the work, which any node does."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from jobwheel.admin.domain.clean_up import CleanUp, CleanUpState, CleanUpWhich
from jobwheel.admin.domain.event import SYSTEM, EventKind, NewEvent
from jobwheel.admin.domain.ids import CleanUpId, GroupId, JobId
from jobwheel.admin.services.errors import ForbiddenError, NotFoundError
from jobwheel.admin.services.job_input import read_choice
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.services.slices import PAUSE_S, Slices
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection
from jobwheel.admin.store.clean_ups import (
    NewCleanUp,
    Part,
    begin,
    cancel,
    clean,
    find_bounds,
    get_clean_up,
    insert_clean_up,
    list_clean_ups,
    next_clean_up,
    next_part,
)
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.jobs import get_job
from jobwheel.admin.store.reports import recount_slices
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock

_TURN_EACH_S: Final = 5.0
_LAST_DAY: Final = {2: 28, 4: 30, 6: 30, 9: 30, 11: 30}


@dataclass(frozen=True, slots=True)
class CleanUpWish:
    """What is to go: one of the names of `CleanUpWhich`, of all runs, or those of a group or a job."""

    which: str
    group_id: GroupId | None = None
    job_id: JobId | None = None


class CleanUps(Scoped):
    """The use cases of clean-ups.

    For somebody to whom some groups alone exist a clean-up is of a group, or of a job's runs in its group, and others
    are not there.
    """

    def __init__(
        self, database: Database, clock: Clock, zone: InstallationZone, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._wake = wake

    async def ask(self, wish: CleanUpWish, *, actor: str) -> CleanUp:
        """Have runs that are done removed; the answer comes before the first one is.

        Raises:
            InvalidFieldError: no such choice.
            NotFoundError: there is no such group or job.
            ForbiddenError: all groups are meant, and not all are his.
        """
        which = read_choice("which", wish.which, CleanUpWhich)
        made = await self._database.write(self._ask, which, wish, actor)
        self._wake()
        return made

    async def get(self, clean_up_id: CleanUpId) -> CleanUp:
        """A clean-up, as far as it is.

        Raises:
            NotFoundError: there is none of this id.
        """
        found = await self._database.read(get_clean_up, clean_up_id)
        if found is None or (self.group_ids is not None and found.group_id not in self.group_ids):
            raise NotFoundError("clean-up", clean_up_id)
        return found

    async def page(self, before_id: int | None, limit: int) -> Sequence[CleanUp]:
        """Clean-ups, newest first."""
        return await self._database.read(list_clean_ups, before_id, limit, self.group_ids)

    async def cancel(self, clean_up_id: CleanUpId, *, actor: str) -> CleanUp:
        """End a clean-up within a slice; what is removed is gone. One that has ended stays as it is.

        Raises:
            NotFoundError: there is none of this id.
        """
        await self.get(clean_up_id)
        await self._database.write(self._cancel, clean_up_id, actor)
        return await self.get(clean_up_id)

    def _ask(self, connection: Connection, which: CleanUpWhich, wish: CleanUpWish, actor: str) -> CleanUp:
        wish = self._checked(connection, wish, actor)
        now_ms = self._clock.now()
        before = None if which.months is None else months_before(self._zone.to_wall(now_ms), which.months)
        new = NewCleanUp(which, wish.group_id, wish.job_id, before, actor, now_ms)
        made = insert_clean_up(connection, new)
        insert_event(connection, _event(EventKind.RUN_CLEAN_UP_REQUESTED, made, actor, now_ms))
        return made

    def _checked(self, connection: Connection, wish: CleanUpWish, actor: str) -> CleanUpWish:
        """What is wished, if it may be; with the group, where the job's runs of other groups are not the asker's."""
        job = None if wish.job_id is None else get_job(connection, self._zone, wish.job_id)
        if wish.job_id is not None and (job is None or self.hides(job.settings.group_id)):
            raise NotFoundError("job", wish.job_id)
        if wish.group_id is not None and (
            self.hides(wish.group_id) or get_group(connection, self._zone, wish.group_id) is None
        ):
            raise NotFoundError("group", wish.group_id)
        if self.group_ids is None or wish.group_id is not None:
            return wish
        if job is None:
            raise ForbiddenError(f"{actor} may clean up runs of his own groups alone; give group_id or job_id")
        return replace(wish, group_id=job.settings.group_id)

    def _cancel(self, connection: Connection, clean_up_id: CleanUpId, actor: str) -> None:
        now_ms = self._clock.now()
        if cancel(connection, clean_up_id, now_ms):
            _tell_end(connection, clean_up_id, actor, now_ms)


class CleanUpWork:
    """Does what was asked for, in the order in which it was, a slice at a time; after a restart it goes on."""

    def __init__(self, database: Database, clock: Clock, turn: Turn, pause_s: float = PAUSE_S) -> None:
        self._database = database
        self._clock = clock
        self._turn = turn
        self._slices = Slices(database, pause_s)

    async def run_once(self) -> None:
        """Bring every open clean-up to its end, if no other node does."""
        if await self._database.read(next_clean_up) is None:
            return
        async with self._turn.taken() as mine:
            goes_on = mine
            while goes_on and (found := await self._database.read(next_clean_up)) is not None:
                goes_on = await self._work(found)

    async def _work(self, found: CleanUp) -> bool:
        """Do one; False if the turn is another node's meanwhile."""
        if found.state is CleanUpState.WAITING:
            bounds = await self._database.read(find_bounds, found.id)
            await self._database.write(begin, found.id, bounds, self._clock.now())
        kept_s = self._clock.monotonic()
        while True:
            part = await self._database.read(next_part, found.id, self._slices.size)
            if part.is_last:
                await self._database.write(self._end, found.id, part)
                return True
            if not await self._slices.change(len(part.run_ids), clean, found.id, part, self._clock.now()):
                return True
            await self._slices.rest()
            if self._clock.monotonic() - kept_s >= _TURN_EACH_S:
                kept_s = self._clock.monotonic()
                if not await self._turn.keep():
                    return False

    def _end(self, connection: Connection, clean_up_id: CleanUpId, part: Part) -> None:
        now_ms = self._clock.now()
        if clean(connection, clean_up_id, part, now_ms):
            _tell_end(connection, clean_up_id, SYSTEM, now_ms)


def months_before(wall: datetime, months: int) -> datetime:
    """The same time so many calendar months ago, or on the last day of a month that is too short."""
    year, month = divmod(wall.year * 12 + wall.month - 1 - months, 12)
    return wall.replace(year=year, month=month + 1, day=min(wall.day, _LAST_DAY.get(month + 1, 31)))


def _tell_end(connection: Connection, clean_up_id: CleanUpId, actor: str, now_ms: int) -> None:
    ended = get_clean_up(connection, clean_up_id)
    assert ended is not None
    if ended.deleted:
        recount_slices(connection)
    insert_event(connection, _event(EventKind.RUN_CLEAN_UP_ENDED, ended, actor, now_ms))


def _event(kind: EventKind, about: CleanUp, actor: str, now_ms: int) -> NewEvent:
    details: dict[str, object] = {"clean_up": about.id, "which": about.which, "state": about.state}
    if about.ended_ms is not None:
        details["deleted"] = about.deleted
    return NewEvent(kind, now_ms, actor, about.group_id, about.job_id, None, details)
