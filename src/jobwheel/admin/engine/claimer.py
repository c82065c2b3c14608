"""The claim: due jobs to pending runs, in one transaction under the schedule's lock; nothing is sent before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType, triggered_ms
from jobwheel.admin.engine.planner import Fire, Misfire, Plan, PlanLimits, Schedules, UnusableJobError, plan
from jobwheel.admin.store import Connection, claims, events, runs
from jobwheel.admin.store.database import Database
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
    """What one transaction did; `more` if there was more due than it could take."""

    runs: list[PendingRun]
    events: list[NewEvent]
    more: bool


@dataclass(slots=True)
class _Batch:
    """What a transaction gathers before it writes."""

    room: int
    moves: list[tuple[JobId, int, int | None, int, bool]] = field(default_factory=list)
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
        self._runs_per_job = 1.0
        self._between_tries = Backoff(first_s=0.01, most_s=0.04, jitter=0.5)

    async def run_once(self) -> int:
        """Claim until nothing due is left; return how many runs were planned."""
        planned = 0
        while True:
            claimed = await self._claim_surely()
            self._fly(claimed.runs)
            planned += len(claimed.runs)
            for event in claimed.events:
                log.warning(event.kind.value, job_id=event.job_id, **event.details)
            if not claimed.more:
                return planned

    async def _claim_surely(self) -> Claimed:
        until_s, tries = self._clock.monotonic() + _LOCK_TRIED_S, 0
        while True:
            try:
                return await self._database.write(self._claim, self._node_id())
            except ScheduleLockedError:
                if self._clock.monotonic() >= until_s:
                    raise
                tries += 1
                await self._clock.wait(self._between_tries.delay_s(tries))

    def _claim(self, connection: Connection, node_id: NodeId) -> Claimed:
        claims.lock_schedule(connection)
        # Read under the lock: what was missed while it was waited for is a misfire.
        now_ms = self._clock.now()
        horizon_ms = now_ms + int(self._limits.look_ahead_s * 1000)
        most = self._limits.most_runs
        # As many as there will be room for, if they fire as often as the last ones: none is read in vain.
        most_jobs = max(1, round(most / self._runs_per_job))
        due = claims.due_jobs(connection, now_ms + int(self._limits.claimed_ahead_s * 1000), most_jobs)
        batch = _Batch(room=most)
        for job in due:
            if batch.room <= 0:
                break
            self._plan_into(batch, job, node_id, now_ms, horizon_ms)
        matched = claims.move_on(connection, batch.moves)
        written = runs.insert_runs(connection, self._zone, [run for job_id, run in batch.runs if job_id in matched])
        noted = [event for job_id, event in batch.events if job_id in matched]
        events.insert_events(connection, noted)
        self._runs_per_job = max(1.0, len(batch.runs) / max(1, len(batch.moves)))
        return Claimed(written, noted, more=batch.room <= 0 or len(due) == most_jobs)

    def _plan_into(self, batch: _Batch, job: DueJob, node_id: NodeId, now_ms: int, horizon_ms: int) -> None:
        limits = PlanLimits(horizon_ms, batch.room, self._limits.most_made_up)
        try:
            planned = plan(job, self._schedules.of(job), now_ms, limits)
        except (UnusableJobError, ArithmeticError, TypeError, ValueError) as error:
            # The latter three: columns that hold another type than the schema says, as SQLite lets them.
            batch.room -= 1
            batch.moves.append((job.id, job.next_ms, None, 0, False))
            batch.events.append((job.id, _event(job, EventKind.JOB_CORRUPT, now_ms, {"reason": str(error)})))
            return
        # A run of a job costs room, and so does looking at one that fires nothing.
        batch.room -= max(1, len(planned.fires))
        batch.moves.append((job.id, job.next_ms, planned.last_ms, planned.next_ms or 0, planned.next_ms is not None))
        batch.runs.extend((job.id, _run(job, fire, node_id, now_ms)) for fire in planned.fires)
        batch.events.extend((job.id, event) for event in _events(job, planned, now_ms))


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
