"""The claim: one transaction under the schedule's lock, from due jobs to pending runs.

It may run in another process, and imports little.
"""

import functools
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.engine.planner import Fire, Misfire, Plan, PlanLimits, Schedules, UnusableJobError, plan
from jobwheel.admin.store import Connection, claims, events, runs
from jobwheel.admin.store.dialects.base import Move
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text

_NO_JOB, _NO_GROUP = JobId(0), GroupId(0)


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

    def horizon_ms(self, now_ms: int) -> int:
        """Up to which next time jobs are claimed now."""
        return now_ms + int(self.claimed_ahead_s * 1000)


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one transaction did, and how often the jobs fired.

    `more` if there was more due than it could take, `works` if a job was claimed.
    """

    runs: list[PendingRun]
    events: list[NewEvent]
    runs_per_job: float
    more: bool
    works: bool = False


def claim(
    connection: Connection,
    zone: InstallationZone,
    clock: Clock,
    node_id: NodeId,
    limits: ClaimLimits,
    most_jobs: int,
    left_out: Collection[JobId] = (),
) -> Claimed:
    """Claim up to `most_jobs` jobs in the transaction, those that are left out aside; see `Claimer`.

    Raises:
        ScheduleLockedError: another admin claims.
    """
    claims.lock_schedule(connection)
    # Read under the lock: what was missed while it was waited for is a misfire.
    now_ms = clock.now()
    most = most_jobs + len(left_out)
    due = claims.due_jobs(connection, limits.horizon_ms(now_ms), most)
    wanted = [job for job in due if job.id not in left_out] if left_out else due
    claimed = write_plans(connection, zone, node_id, wanted, now_ms, limits)
    return replace(claimed, more=True) if len(due) == most else claimed


def claim_alone(
    connection: Connection, zone: InstallationZone, clock: Clock, node_id: NodeId, limits: ClaimLimits, job_id: JobId
) -> Claimed:
    """Claim one job, if it is due still.

    Raises:
        ScheduleLockedError: another admin claims.
    """
    claims.lock_schedule(connection)
    now_ms = clock.now()
    due = claims.due_job(connection, job_id, limits.horizon_ms(now_ms))
    return write_plans(connection, zone, node_id, due, now_ms, limits)


def stop_refused(
    connection: Connection,
    zone: InstallationZone,  # noqa: ARG001 - the signature of all claims
    clock: Clock,
    node_id: NodeId,  # noqa: ARG001 - as above
    limits: ClaimLimits,
    job_id: JobId,
    reason: str,
) -> Claimed:
    """Stop a job that is due and that the database refuses to have planned, with an event that says why.

    Raises:
        ScheduleLockedError: another admin claims.
    """
    claims.lock_schedule(connection)
    now_ms = clock.now()
    due = claims.due_job(connection, job_id, limits.horizon_ms(now_ms))
    matched = claims.move_on(connection, [_stopped(job) for job in due])
    noted = [_event(job, EventKind.JOB_CORRUPT, now_ms, {"reason": reason}) for job in due if job.id in matched]
    events.insert_events(connection, noted)
    return Claimed([], noted, 1.0, more=False)


def try_out(
    connection: Connection,
    zone: InstallationZone,
    clock: Clock,
    node_id: NodeId,
    limits: ClaimLimits,  # noqa: ARG001 - the signature of all claims
) -> Claimed:
    """Whether the database takes a pending run at all: one of no job is written, and removed at once.

    Raises:
        ScheduleLockedError: another admin claims.
    """
    claims.lock_schedule(connection)
    now_ms = clock.now()
    run = NewRun(_NO_JOB, _NO_GROUP, TriggerType.CRON, now_ms, now_ms, now_ms, "", node_id)
    written = runs.insert_runs(connection, zone, [run])
    runs.remove_runs_without_job(connection, node_id, [each.id for each in written])
    return Claimed([], [], 1.0, more=False)


def jobs_to_claim(
    connection: Connection, clock: Clock, limits: ClaimLimits, most_jobs: int, left_out: Collection[JobId]
) -> list[DueJob]:
    """The jobs that a claim of so many looks at, as they are now."""
    horizon_ms = limits.horizon_ms(clock.now())
    due = claims.due_jobs(connection, horizon_ms, most_jobs + len(left_out))
    return [job for job in due if job.id not in left_out]


def write_plans(
    connection: Connection,
    zone: InstallationZone,
    node_id: NodeId,
    due: Sequence[DueJob],
    now_ms: int,
    limits: ClaimLimits,
) -> Claimed:
    """Plan jobs as they were read, before the transaction or in it: who was changed since is left as it is."""
    batch = _Batch(node_id, _schedules(zone.name), now_ms, limits)
    for job in due:
        if batch.room <= 0:
            break
        batch.plan(job)
    matched = claims.move_on(connection, batch.moves)
    # Rows that are sent together, and answered, lie together: a page is changed once for all of its runs.
    planned = sorted((run for job_id, run in batch.runs if job_id in matched), key=_due_ms)
    written = runs.insert_runs(connection, zone, planned)
    noted = [event for job_id, event in batch.events if job_id in matched]
    events.insert_events(connection, noted)
    runs_per_job = max(1.0, len(batch.runs) / max(1, len(batch.moves)))
    return Claimed(written, noted, runs_per_job, more=batch.room <= 0, works=bool(matched))


_due_ms = operator.attrgetter("due_ms")


# Kept with the process: to parse a schedule costs a hundred times a next time.
_schedules = functools.cache(Schedules)


class _Batch:
    """What a transaction gathers before it writes."""

    def __init__(self, node_id: NodeId, schedules: Schedules, now_ms: int, limits: ClaimLimits) -> None:
        self._node_id = node_id
        self._schedules = schedules
        self._now_ms = now_ms
        self._horizon_ms = now_ms + int(limits.look_ahead_s * 1000)
        self._most_made_up = limits.most_made_up
        self.room = limits.most_runs
        self.moves: list[Move] = []
        self.runs: list[tuple[JobId, NewRun]] = []
        self.events: list[tuple[JobId, NewEvent]] = []

    def plan(self, job: DueJob) -> None:
        now_ms = self._now_ms
        try:
            limits = PlanLimits(self._horizon_ms, self.room, self._most_made_up)
            planned = plan(job, self._schedules.of(job), now_ms, limits)
        except (UnusableJobError, ArithmeticError, TypeError, ValueError) as error:
            # The latter three: columns that hold another type than the schema says, as SQLite lets them.
            self.room -= 1
            self.moves.append(_stopped(job))
            self.events.append((job.id, _event(job, EventKind.JOB_CORRUPT, now_ms, {"reason": str(error)})))
            return
        # A run of a job costs room, and so does looking at one that fires nothing.
        self.room -= max(1, len(planned.fires))
        goes_on = planned.next_ms is not None
        self.moves.append((job.id, job.next_ms, job.version, planned.last_ms, planned.next_ms or 0, goes_on))
        self.runs.extend((job.id, _run(job, fire, self._node_id, now_ms)) for fire in planned.fires)
        self.events.extend((job.id, event) for event in _events(job, planned, now_ms))


def _stopped(job: DueJob) -> Move:
    return job.id, job.next_ms, job.version, None, 0, False


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
