"""The claim: one transaction under the schedule's lock, from due jobs to pending runs.

It may run in another process, and imports little.
"""

import functools
from dataclasses import dataclass

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.engine.planner import Fire, Misfire, Plan, PlanLimits, Schedules, UnusableJobError, plan
from jobwheel.admin.store import Connection, claims, events, runs
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text


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


@dataclass(frozen=True, slots=True)
class Claimed:
    """What one transaction did, and how often the jobs fired; `more` if there was more due than it could take."""

    runs: list[PendingRun]
    events: list[NewEvent]
    runs_per_job: float
    more: bool


def claim(
    connection: Connection, zone: InstallationZone, clock: Clock, node_id: NodeId, limits: ClaimLimits, most_jobs: int
) -> Claimed:
    """Claim up to `most_jobs` jobs in the transaction; see `Claimer`.

    Raises:
        ScheduleLockedError: another admin claims.
    """
    claims.lock_schedule(connection)
    # Read under the lock: what was missed while it was waited for is a misfire.
    now_ms = clock.now()
    due = claims.due_jobs(connection, now_ms + int(limits.claimed_ahead_s * 1000), most_jobs)
    batch = _Batch(node_id, _schedules(zone.name), now_ms, limits)
    for job in due:
        if batch.room <= 0:
            break
        batch.plan(job)
    matched = claims.move_on(connection, batch.moves)
    written = runs.insert_runs(connection, zone, [run for job_id, run in batch.runs if job_id in matched])
    noted = [event for job_id, event in batch.events if job_id in matched]
    events.insert_events(connection, noted)
    runs_per_job = max(1.0, len(batch.runs) / max(1, len(batch.moves)))
    return Claimed(written, noted, runs_per_job, more=batch.room <= 0 or len(due) == most_jobs)


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
        self.moves: list[tuple[JobId, int, int | None, int, bool]] = []
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
            self.moves.append((job.id, job.next_ms, None, 0, False))
            self.events.append((job.id, _event(job, EventKind.JOB_CORRUPT, now_ms, {"reason": str(error)})))
            return
        # A run of a job costs room, and so does looking at one that fires nothing.
        self.room -= max(1, len(planned.fires))
        self.moves.append((job.id, job.next_ms, planned.last_ms, planned.next_ms or 0, planned.next_ms is not None))
        self.runs.extend((job.id, _run(job, fire, self._node_id, now_ms)) for fire in planned.fires)
        self.events.extend((job.id, event) for event in _events(job, planned, now_ms))


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
