"""The run log as people read it. What the engine writes of it is in `runs`."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, literal_column, select

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase, Run, Shard, TriggerType
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_log

_BY_HAND = (TriggerType.MANUAL, TriggerType.BACKFILL)
"""Causes that are people, who make few runs."""


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; None = all. Planned times are epoch milliseconds, `planned_until_ms` not included."""

    group_id: GroupId | None = None
    job_id: JobId | None = None
    phase: Phase | None = None
    outcome: Outcome | None = None
    trigger_type: TriggerType | None = None
    executor_address: str | None = None
    planned_from_ms: int | None = None
    planned_until_ms: int | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether only a time is asked for; then runs come by their planned times."""
        return self.planned_from_ms is not None or self.planned_until_ms is not None


def get_run(connection: Connection, run_id: RunId) -> Run | None:
    """A run by its id."""
    row = connection.execute(select(job_log).where(job_log.c.id == run_id)).first()
    return None if row is None else _run(row)


def list_runs(connection: Connection, wanted: RunFilter, before_id: int | None, limit: int) -> list[Run]:
    """Runs, newest first, after the run `before_id`: by id; within bounds of the planned time by that, then by id."""
    query = _filtered(select(job_log), wanted).limit(limit)
    index = _index_for(wanted)
    if index is not None:
        query = statements(connection).by_index(query, job_log, index)
    if wanted.has_bounds:
        query = query.order_by(job_log.c.planned_ms.desc(), job_log.c.id.desc())
        if before_id is not None:
            query = _after(query, before_id, _planned_ms_of(connection, before_id))
    else:
        query = query.order_by(job_log.c.id.desc())
        if before_id is not None:
            query = query.where(job_log.c.id < before_id)
    return [_run(row) for row in connection.execute(query)]


def last_planned(connection: Connection, job_id: JobId) -> int | None:
    """The latest planned time of a job's schedule-caused runs, epoch milliseconds.

    From the index alone: a job of which others make millions of runs may have none by its schedule.
    """
    by_schedule = [each.value for each in TriggerType if each.by_schedule]
    query = (
        select(job_log.c.planned_ms)
        .where(job_log.c.job_id == job_id, job_log.c.trigger_type.in_(by_schedule), job_log.c.planned_ms.is_not(None))
        .order_by(job_log.c.planned_ms.desc(), job_log.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def delete_runs_of_job(connection: Connection, job_id: JobId, limit: int) -> int:
    """Remove up to `limit` run rows of a job that is gone; says how many it removed."""
    chosen = select(job_log.c.id).where(job_log.c.job_id == job_id).order_by(job_log.c.id).limit(limit)
    ids = list(connection.execute(chosen).scalars())
    if ids:
        connection.execute(delete(job_log).where(job_log.c.id.in_(ids)))
    return len(ids)


def _index_for(wanted: RunFilter) -> str | None:
    """The index that is right whatever the values are; None = that depends on them."""
    if wanted.phase is not None:
        # Few runs are open at a time.
        return "jobwheel_log_owner" if wanted.job_id is None else "jobwheel_log_open"
    if wanted.outcome not in (None, Outcome.SUCCEEDED):
        return None
    by_schedule = wanted.trigger_type in (None, TriggerType.CRON)
    # Of an outcome and a cause that nearly all runs have, MySQL would read an index down to where a later page begins.
    usual = RunFilter(outcome=wanted.outcome, trigger_type=wanted.trigger_type)
    if by_schedule and wanted == usual:
        return PRIMARY_KEY
    if by_schedule and wanted == replace(usual, executor_address=wanted.executor_address):
        return "jobwheel_log_address"
    return None if wanted.executor_address is not None else _index_of_all_outcomes(wanted)


def _index_of_all_outcomes(wanted: RunFilter) -> str | None:
    by_schedule = wanted.trigger_type in (None, TriggerType.CRON)
    if wanted.job_id is not None:
        if wanted.has_bounds:
            return "jobwheel_log_job_planned"
        return "i_job_id" if by_schedule else None
    if wanted.trigger_type in _BY_HAND:
        return "jobwheel_log_cause"
    if wanted.group_id is None or not by_schedule:
        return None
    return "jobwheel_log_group_planned" if wanted.has_bounds else "i_job_group"


def _planned_ms_of(connection: Connection, run_id: int) -> int | None:
    """The planned time of a run, or of the nearest older one if it was cleaned up meanwhile."""
    nearest = select(job_log.c.planned_ms).where(job_log.c.id <= run_id, job_log.c.planned_ms.is_not(None))
    return connection.execute(nearest.order_by(job_log.c.id.desc()).limit(1)).scalar()


def _after(query: Select[Any], before_id: int, before_ms: int | None) -> Select[Any]:
    """What comes after a run. Its planned time is a value: of a subquery's a planner knows nothing."""
    later = (job_log.c.planned_ms < before_ms) | (job_log.c.id < before_id)
    return query.where(job_log.c.planned_ms <= before_ms, later)


def _filtered(query: Select[Any], wanted: RunFilter) -> Select[Any]:
    equal = {
        job_log.c.job_group: wanted.group_id,
        job_log.c.job_id: wanted.job_id,
        job_log.c.phase: wanted.phase,
        job_log.c.outcome: wanted.outcome,
        job_log.c.trigger_type: wanted.trigger_type,
        job_log.c.executor_address: wanted.executor_address,
    }
    for column, value in equal.items():
        if value is not None:
            query = query.where(column == value)
    # In words of the partial indexes: a database does not see that a value it is given later is none of these.
    if wanted.outcome not in (None, Outcome.SUCCEEDED):
        query = query.where(literal_column("outcome <> 'succeeded'"))
    if wanted.trigger_type not in (None, TriggerType.CRON):
        query = query.where(literal_column("trigger_type <> 'CRON'"))
    if wanted.planned_from_ms is not None:
        query = query.where(job_log.c.planned_ms >= wanted.planned_from_ms)
    if wanted.planned_until_ms is not None:
        query = query.where(job_log.c.planned_ms < wanted.planned_until_ms)
    return query


def _run(row: Row[tuple[object, ...]]) -> Run:
    return Run(
        id=RunId(row.id),
        job_id=JobId(row.job_id),
        group_id=GroupId(row.job_group),
        trigger_type=TriggerType(row.trigger_type) if row.trigger_type in set(TriggerType) else None,
        phase=Phase(row.phase) if row.phase in set(Phase) else None,
        outcome=Outcome(row.outcome) if row.outcome in set(Outcome) else None,
        planned_ms=row.planned_ms,
        due_ms=row.due_ms,
        triggered_ms=row.triggered_ms,
        sent_ms=row.sent_ms,
        accepted_ms=row.accepted_ms,
        ended_ms=row.ended_ms,
        executor_address=row.executor_address,
        handler=row.executor_handler,
        parameter=row.executor_param,
        attempt=row.attempt,
        trigger_code=row.trigger_code,
        trigger_message=row.trigger_msg,
        handle_code=row.handle_code,
        handle_message=row.handle_msg,
        shard=Shard.parse(row.executor_sharding_param),
        broadcast_id=None if row.broadcast_id is None else RunId(row.broadcast_id),
    )
