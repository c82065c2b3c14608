"""The claim: due jobs to pending runs, in one transaction under the schedule's lock; nothing is sent before."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Concatenate, ParamSpec

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.engine.planner import Fire, Misfire, Plan, PlanLimits, Schedules, UnusableJobError, plan
from jobwheel.admin.store import Connection, claims, events, runs
from jobwheel.admin.store.database import Database, is_outage, reason_of
from jobwheel.admin.store.errors import ScheduleLockedError
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

# Another node holds the lock for milliseconds, but one with much to claim takes it again at once: the pauses between
# tries are short, so that one of them falls between two of its claims. Whoever holds it for longer than all of them
# fails the pass, which health and log tell.
_LOCK_TRIED_S = 3.0
_LEAST_AHEAD_S = 2.0
_CLAIMED_AHEAD = 0.6
_MOST_REFUSED = 10
"""Jobs that are refused before one is not: then it is not theirs, and a pass must not go on for ever."""
_LET_BE_S = 60.0
"""A job that can be neither claimed nor stopped is looked at so seldom."""

Arguments = ParamSpec("Arguments")
Move = tuple[JobId, int, int | None, int, bool]


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """What one transaction claims.

    Attributes:
        look_ahead_s: a job that is claimed is planned so far ahead.
        most_runs: how many runs are written.
        most_made_up: how many missed ones FIRE_ALL makes up.
        claimed_ahead_s: a job is claimed so long before its next time.
    """

    look_ahead_s: float = 5.0
    most_runs: int = 1000
    most_made_up: int = 100
    claimed_ahead_s: float = 5.0


def claimed_ahead_s(look_ahead_s: float) -> float:
    """How long before its next time a job is claimed: most of the look-ahead, and two passes at least.

    So a job of every second, planned for the whole look-ahead each time, costs a claim each few seconds, not each; and
    passes that fail for a while, because somebody else holds the lock, make nothing late.
    """
    return min(look_ahead_s, max(_LEAST_AHEAD_S, look_ahead_s * _CLAIMED_AHEAD))


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one transaction did; `more` if there was more due than it could take, `works` if a job was claimed."""

    runs: list[PendingRun]
    events: list[NewEvent]
    more: bool
    works: bool = False


@dataclass(slots=True)
class _Pass:
    """What a pass has done so far: how many runs it planned, whether any job could be claimed, which were refused."""

    planned: int = 0
    works: bool = False
    refused: list[tuple[DueJob, Exception]] = field(default_factory=list)


@dataclass(slots=True)
class _Batch:
    """What a transaction gathers before it writes."""

    room: int
    moves: list[Move] = field(default_factory=list)
    runs: list[tuple[JobId, NewRun]] = field(default_factory=list)
    events: list[tuple[JobId, NewEvent]] = field(default_factory=list)


class Claimer:
    """Claims what is due and hands the committed runs to `fly`.

    `node_id` is asked at each claim, since a node that was declared dead goes on under a new id.
    """

    def __init__(
        self,
        database: Database,
        zone: InstallationZone,
        clock: Clock,
        node_id: Callable[[], NodeId],
        fly: Callable[[Sequence[PendingRun]], object],
        limits: ClaimLimits,
    ) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._node_id = node_id
        self._fly = fly
        self._limits = limits
        self._schedules = Schedules(zone.name)
        self._tried: list[DueJob] = []
        self._let_be: dict[JobId, float] = {}
        self._runs_per_job = 1.0
        self._between_tries = Backoff(first_s=0.01, most_s=0.04, jitter=0.5)

    async def run_once(self) -> int:
        """Claim until nothing due is left; return how many runs were planned.

        A batch that the database refuses for a row (a trigger, a value out of range) is tried again in halves until the
        job that is to blame is alone. Everyone else is planned, and then that job is stopped, with an event. If nobody
        else could be planned, no job is to blame, and the pass fails.
        """
        so_far = _Pass()
        most_jobs, more = None, True
        while more:
            claimed = await self._attempt(self._claim, most_jobs, self._left_out(so_far))
            if isinstance(claimed, Claimed):
                self._take(so_far, claimed)
                most_jobs, more = None, claimed.more
            else:
                most_jobs = self._narrowed(so_far, claimed)
        for job, error in so_far.refused:
            if not so_far.works:
                raise error
            await self._stop_refused(so_far, job, reason_of(error))
        return so_far.planned

    def _take(self, so_far: _Pass, claimed: Claimed) -> None:
        self._fly(claimed.runs)
        so_far.planned += len(claimed.runs)
        so_far.works = so_far.works or claimed.works
        for event in claimed.events:
            log.warning(event.kind.value, job_id=event.job_id, **event.details)

    def _left_out(self, so_far: _Pass) -> set[JobId]:
        """The jobs that are not to be looked at now."""
        now_s = self._clock.monotonic()
        self._let_be = {job_id: until_s for job_id, until_s in self._let_be.items() if now_s < until_s}
        return {job.id for job, _ in so_far.refused}.union(self._let_be)

    def _narrowed(self, so_far: _Pass, error: Exception) -> int | None:
        """How many jobs are claimed next, after so many were refused together; None for as many as go."""
        if len(self._tried) > 1:
            return len(self._tried) // 2
        so_far.refused += [(job, error) for job in self._tried]
        if not self._tried or (not so_far.works and len(so_far.refused) == _MOST_REFUSED):
            raise error
        return None

    async def _stop_refused(self, so_far: _Pass, job: DueJob, reason: str) -> None:
        """Stop a job that is refused still, now that others were planned."""
        claimed = await self._attempt(self._claim_alone, job)
        if not isinstance(claimed, Claimed):
            claimed = await self._attempt(self._stop, job, reason)
        if isinstance(claimed, Claimed):
            self._take(so_far, claimed)
            return
        log.error("claimer.job_cannot_be_stopped", job_id=job.id, reason=reason, error=reason_of(claimed))
        self._let_be[job.id] = self._clock.monotonic() + _LET_BE_S

    async def _attempt(
        self,
        work: Callable[Concatenate[Connection, NodeId, Arguments], Claimed],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Claimed | Exception:
        """What a transaction under the lock did, or the error for which a row may be to blame."""
        until_s, tries = self._clock.monotonic() + _LOCK_TRIED_S, 0
        self._tried = []
        while True:
            try:
                return await self._database.write(work, self._node_id(), *args, **kwargs)
            except ScheduleLockedError:
                if self._clock.monotonic() >= until_s:
                    raise
                tries += 1
                await self._clock.wait(self._between_tries.delay_s(tries))
            except Exception as error:
                if is_outage(error):
                    raise
                return error

    def _claim(
        self, connection: Connection, node_id: NodeId, most_jobs: int | None, left_out: Collection[JobId]
    ) -> Claimed:
        self._tried = []
        claims.lock_schedule(connection)
        # Read under the lock: what was missed while it was waited for is a misfire.
        now_ms = self._clock.now()
        # As many as there will be room for, if they fire as often as the last ones: none is read in vain.
        most = most_jobs or max(1, round(self._limits.most_runs / self._runs_per_job))
        most += len(left_out)
        due = claims.due_jobs(connection, now_ms + int(self._limits.claimed_ahead_s * 1000), most)
        wanted = [job for job in due if job.id not in left_out] if left_out else due
        claimed = self._write(connection, node_id, wanted, now_ms)
        return replace(claimed, more=True) if len(due) == most else claimed

    def _claim_alone(self, connection: Connection, node_id: NodeId, job: DueJob) -> Claimed:
        claims.lock_schedule(connection)
        return self._write(connection, node_id, [job], self._clock.now())

    def _stop(self, connection: Connection, node_id: NodeId, job: DueJob, reason: str) -> Claimed:  # noqa: ARG002 - a claim's signature
        claims.lock_schedule(connection)
        matched = claims.move_on(connection, [_stopped(job)])
        noted = [_event(job, EventKind.JOB_CORRUPT, self._clock.now(), {"reason": reason})] if matched else []
        events.insert_events(connection, noted)
        return Claimed([], noted, more=False)

    def _write(self, connection: Connection, node_id: NodeId, due: Sequence[DueJob], now_ms: int) -> Claimed:
        horizon_ms = now_ms + int(self._limits.look_ahead_s * 1000)
        batch = _Batch(room=self._limits.most_runs)
        for job in due:
            if batch.room <= 0:
                break
            self._tried.append(job)
            self._plan_into(batch, job, node_id, now_ms, horizon_ms)
        matched = claims.move_on(connection, batch.moves)
        written = runs.insert_runs(connection, self._zone, [run for job_id, run in batch.runs if job_id in matched])
        noted = [event for job_id, event in batch.events if job_id in matched]
        events.insert_events(connection, noted)
        self._runs_per_job = max(1.0, len(batch.runs) / max(1, len(batch.moves)))
        return Claimed(written, noted, more=batch.room <= 0, works=bool(matched))

    def _plan_into(self, batch: _Batch, job: DueJob, node_id: NodeId, now_ms: int, horizon_ms: int) -> None:
        limits = PlanLimits(horizon_ms, batch.room, self._limits.most_made_up)
        try:
            planned = plan(job, self._schedules.of(job), now_ms, limits)
        except (UnusableJobError, ArithmeticError, TypeError, ValueError) as error:
            # The latter three: columns that hold another type than the schema says, as SQLite lets them.
            batch.room -= 1
            batch.moves.append(_stopped(job))
            batch.events.append((job.id, _event(job, EventKind.JOB_CORRUPT, now_ms, {"reason": str(error)})))
            return
        # A run of a job costs room, and so does looking at one that fires nothing.
        batch.room -= max(1, len(planned.fires))
        batch.moves.append((job.id, job.next_ms, planned.last_ms, planned.next_ms or 0, planned.next_ms is not None))
        batch.runs.extend((job.id, _run(job, fire, node_id, now_ms)) for fire in planned.fires)
        batch.events.extend((job.id, event) for event in _events(job, planned, now_ms))


def _stopped(job: DueJob) -> Move:
    return job.id, job.next_ms, None, 0, False


def _run(job: DueJob, fire: Fire, node_id: NodeId, now_ms: int) -> NewRun:
    missed = fire.trigger_type is TriggerType.MISFIRE
    return NewRun(
        job_id=job.id,
        group_id=job.group_id,
        trigger_type=fire.trigger_type,
        planned_ms=fire.planned_ms,
        due_ms=now_ms if missed else fire.planned_ms,
        triggered_ms=triggered_ms(fire.trigger_type, fire.planned_ms, now_ms),
        parameter=job.parameter,
        owner=node_id,
    )


def _events(job: DueJob, planned: Plan, now_ms: int) -> list[NewEvent]:
    noted = []
    if planned.misfire is not None:
        noted.append(_event(job, EventKind.JOB_MISFIRED, now_ms, _misfire_details(planned.misfire)))
    if planned.next_ms is None:
        last = None if planned.last_ms is None else instant_text(planned.last_ms)
        noted.append(_event(job, EventKind.JOB_FINISHED, now_ms, {"last_planned_at": last}))
    return noted


def _misfire_details(misfire: Misfire) -> dict[str, object]:
    return {
        "count": misfire.count,
        "more": misfire.more,
        "from": instant_text(misfire.first_ms),
        "until": instant_text(misfire.last_ms),
        "strategy": misfire.strategy.value,
        "runs": len(misfire.made_up),
    }


def _event(job: DueJob, kind: EventKind, now_ms: int, details: dict[str, object]) -> NewEvent:
    return NewEvent(kind=kind, at_ms=now_ms, group_id=job.group_id, job_id=job.id, details=details)
