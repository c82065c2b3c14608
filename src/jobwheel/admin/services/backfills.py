"""Runs for times that are past: what a schedule would have run, made up for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError
from jobwheel.admin.services.job_events import removed_event
from jobwheel.admin.services.job_input import checked_parameter
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event, insert_events
from jobwheel.admin.store.jobs import get_job
from jobwheel.admin.store.run_chains import planned_in
from jobwheel.admin.store.runs import insert_runs, remove_backfill
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text
from jobwheel.schedule import Schedule, ScheduleType, closed_times, parse_schedule, with_closed_times

MOST_RUNS: Final = 10_000
"""How many runs one backfill may make."""

MOST_INTERVAL_S: Final = 86_400.0
_BATCH: Final = 1000
# What comes due later the feeder brings: memory is for runs that are about to fly.
_FLY_WITHIN_MS: Final = 5_000

_WHY_NOT: Final[Mapping[ScheduleType, str]] = {
    ScheduleType.NONE: "NONE has no planned times to make up for; run the job by hand",
    ScheduleType.FIX_DELAY: "FIX_DELAY has no planned times of its own: each depends on the end of the run before",
}


@dataclass(frozen=True, slots=True)
class BackfillWish:
    """Which planned times, and how fast.

    Attributes:
        from_ms: the first instant that may be one (epoch milliseconds).
        until_ms: the first one that may not.
        interval_s: how far apart the runs come due; 0 = all at once.
        parameter: for all of them; None = the job's.
        in_pauses: whether instants in the job's pause windows count.
        only_missing: whether instants that have a run already are left out.
        dry_run: whether it is only told what would be made.
    """

    from_ms: int
    until_ms: int
    interval_s: float = 1.0
    parameter: str | None = None
    in_pauses: bool = False
    only_missing: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Backfill:
    """What was made: how many runs, of which planned times, and when the last one comes due (epoch milliseconds).

    `skipped` instants had a run already.
    """

    count: int
    skipped: int
    first_ms: int | None
    last_ms: int | None
    due_until_ms: int | None


class Backfills(Scoped):
    """The use cases of backfills. Their runs wait as pending rows like all others: their due times are the rate."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, scheduler: Scheduler) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._scheduler = scheduler

    async def make(self, job_id: JobId, wish: BackfillWish, *, actor: str) -> Backfill:
        """Write a run for each of the schedule's instants in the range, oldest first; all or none.

        Raises:
            NotFoundError: there is no such job.
            InvalidFieldError: the range, its size, or the job's schedule allows none.
            ScheduleError: what is stored is no schedule.
        """
        self._check(wish)
        if wish.dry_run:
            return (await self._database.read(self._dry_run, job_id, wish))[0]
        backfill, pending = await self._database.write(self._make, job_id, wish, actor)
        soon_ms = self._clock.now() + _FLY_WITHIN_MS
        self._scheduler.fly([run for run in pending if run.due_ms <= soon_ms])
        return backfill

    async def cancel(self, job_id: JobId, *, actor: str) -> int:
        """Remove the job's backfill runs that have not been sent; says how many.

        Raises:
            NotFoundError: there is no such job.
        """
        return await self._database.write(self._cancel, job_id, actor)

    def _check(self, wish: BackfillWish) -> None:
        if wish.until_ms <= wish.from_ms:
            raise InvalidFieldError("until", f"{instant_text(wish.until_ms)} is not after from")
        now_ms = self._clock.now()
        if wish.until_ms > now_ms:
            problem = f"is after {instant_text(now_ms)}, which is now: what is to come the schedule itself runs"
            raise InvalidFieldError("until", f"{instant_text(wish.until_ms)} {problem}")
        if not 0 <= wish.interval_s <= MOST_INTERVAL_S:
            raise InvalidFieldError("interval_s", f"{wish.interval_s} is not from 0 to {MOST_INTERVAL_S:.0f} seconds")
        if wish.parameter is not None:
            checked_parameter("parameter", wish.parameter)

    def _dry_run(self, connection: Connection, job_id: JobId, wish: BackfillWish) -> tuple[Backfill, list[int]]:
        job = get_job(connection, self._zone, job_id)
        if job is None or self.hides(job.settings.group_id):
            raise NotFoundError("job", job_id)
        return self._instants(connection, job, wish, self._clock.now())

    def _make(
        self, connection: Connection, job_id: JobId, wish: BackfillWish, actor: str
    ) -> tuple[Backfill, list[PendingRun]]:
        job = self._locked(connection, job_id)
        now_ms = self._clock.now()
        backfill, instants = self._instants(connection, job, wish, now_ms)
        pending: list[PendingRun] = []
        for first in range(0, len(instants), _BATCH):
            batch = enumerate(instants[first : first + _BATCH], first)
            runs = [self._run(job, wish, planned_ms, _due_ms(wish, now_ms, at)) for at, planned_ms in batch]
            pending += insert_runs(connection, self._zone, runs)
        details = {
            "from": instant_text(wish.from_ms),
            "until": instant_text(wish.until_ms),
            "count": backfill.count,
            "skipped": backfill.skipped,
            "interval_s": wish.interval_s,
            "parameter": wish.parameter,
        }
        group_id = job.settings.group_id
        insert_event(connection, NewEvent(EventKind.JOB_BACKFILLED, now_ms, actor, group_id, job_id, None, details))
        return backfill, pending

    def _cancel(self, connection: Connection, job_id: JobId, actor: str) -> int:
        job = self._locked(connection, job_id)
        removed = remove_backfill(connection, job_id)
        insert_events(connection, removed_event(job, removed, actor, self._clock.now(), "backfill cancelled"))
        return len(removed)

    def _instants(
        self, connection: Connection, job: Job, wish: BackfillWish, now_ms: int
    ) -> tuple[Backfill, list[int]]:
        found = _instants_in(_schedule(job, self._zone.name, in_pauses=wish.in_pauses), wish.from_ms, wish.until_ms)
        there = planned_in(connection, job.id, wish.from_ms, wish.until_ms) if wish.only_missing else set()
        instants = [each for each in found if each not in there]
        due_until_ms = _due_ms(wish, now_ms, len(instants) - 1) if instants else None
        first_ms, last_ms = (instants[0], instants[-1]) if instants else (None, None)
        return Backfill(len(instants), len(found) - len(instants), first_ms, last_ms, due_until_ms), instants

    def _run(self, job: Job, wish: BackfillWish, planned_ms: int, due_ms: int) -> NewRun:
        return NewRun(
            job_id=job.id,
            group_id=job.settings.group_id,
            trigger_type=TriggerType.BACKFILL,
            planned_ms=planned_ms,
            due_ms=due_ms,
            triggered_ms=triggered_ms(TriggerType.BACKFILL, planned_ms, self._clock.now()),
            parameter=job.settings.parameter if wish.parameter is None else wish.parameter,
            owner=self._scheduler.node_id,
        )

    def _locked(self, connection: Connection, job_id: JobId) -> Job:
        job = get_job(connection, self._zone, job_id, lock=True)
        if job is None or self.hides(job.settings.group_id):
            raise NotFoundError("job", job_id)
        return job


def _due_ms(wish: BackfillWish, now_ms: int, at: int) -> int:
    return now_ms + int(at * wish.interval_s * 1000)


def _schedule(job: Job, zone: str, *, in_pauses: bool) -> Schedule:
    settings = job.settings
    if settings.schedule_type in _WHY_NOT:
        raise InvalidFieldError("schedule_type", _WHY_NOT[settings.schedule_type])
    if settings.schedule_type is ScheduleType.FIX_RATE and settings.anchor_ms is None:
        raise InvalidFieldError("anchor_at", "the job was never started, so that nothing says what its times are")
    schedule = parse_schedule(
        settings.schedule_type, settings.schedule_conf, zone=settings.time_zone or zone, anchor_ms=settings.anchor_ms
    )
    closed = closed_times(settings.valid_from_ms, settings.valid_until_ms, ()) if in_pauses else settings.closed_times
    return with_closed_times(schedule, closed)


def _instants_in(schedule: Schedule, from_ms: int, until_ms: int) -> list[int]:
    instants: list[int] = []
    instant = schedule.next_after(from_ms - 1)
    while instant is not None and instant < until_ms:
        if len(instants) == MOST_RUNS:
            problem = f"there are more than {MOST_RUNS} planned times from {instant_text(from_ms)} on; the last one "
            raise InvalidFieldError("until", f"{problem}that is allowed is {instant_text(instants[-1])}")
        instants.append(instant)
        instant = schedule.next_after(instant)
    return instants
