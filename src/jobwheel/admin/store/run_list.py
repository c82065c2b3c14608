"""The run log as people read it. What the engine writes of it is in `runs`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, Row, Select, delete, literal_column, select, union_all

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase, Run, Shard, TriggerType
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.run_causes import has_runs_by
from jobwheel.admin.store.sqlite_commits import note_removed
from jobwheel.admin.store.tables import job_info, job_log

_BY_HAND = (TriggerType.MANUAL, TriggerType.BACKFILL)
"""Causes that are people, who make few runs."""

_GROUPS_AT_ONCE = 50
"""So many groups are asked for their pages in one statement: SQLite takes 500 parts at most."""

_FEW_GROUPS = 4


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs to list; None = all. Planned times are epoch milliseconds, `planned_until_ms` not included.

    `group_ids` are those that the caller may see.
    """

    group_id: GroupId | None = None
    job_id: JobId | None = None
    phase: Phase | None = None
    outcome: Outcome | None = None
    trigger_type: TriggerType | None = None
    executor_address: str | None = None
    planned_from_ms: int | None = None
    planned_until_ms: int | None = None
    group_ids: frozenset[GroupId] | None = None

    @property
    def has_bounds(self) -> bool:
        """Whether only a time is asked for; then runs come by their planned times."""
        return self.planned_from_ms is not None or self.planned_until_ms is not None


def get_run(connection: Connection, run_id: RunId, *, lock: bool = False) -> Run | None:
    """A run by its id; with `lock` nobody else changes it until the transaction ends."""
    query = select(job_log).where(job_log.c.id == run_id)
    row = connection.execute(query.with_for_update() if lock else query).first()
    return None if row is None else _run(row)


def open_among(connection: Connection, run_ids: Sequence[RunId]) -> set[RunId]:
    """Those of the runs that are not done; the others are, or are gone."""
    query = select(job_log.c.id).where(job_log.c.id.in_(run_ids), job_log.c.phase.is_not(None))
    return set(connection.execute(statements(connection).by_index(query, job_log, PRIMARY_KEY)).scalars())


def hold_runs(connection: Connection, run_ids: Sequence[RunId]) -> list[Run]:
    """Runs by their ids, in that order; nobody else changes them until the transaction ends."""
    held = select(job_log).where(job_log.c.id.in_(run_ids)).order_by(job_log.c.id).with_for_update()
    held = statements(connection).by_index(held, job_log, PRIMARY_KEY)
    return [_run(row) for row in connection.execute(held)]


def list_runs(connection: Connection, wanted: RunFilter, before_id: int | None, limit: int) -> list[Run]:
    """Runs, newest first, after the run `before_id`: by id; within bounds of the planned time by that, then by id.

    For somebody to whom some groups alone exist a job in another one does not, so there are no runs to list by it.
    """
    narrowed = None if _is_of_a_hidden_job(connection, wanted) else _narrowed(wanted)
    if narrowed is None or _is_of_a_cause_that_never_was(connection, narrowed):
        return []
    wanted = narrowed
    before_ms = None if before_id is None or not wanted.has_bounds else _planned_ms_of(connection, before_id)
    after = None if before_id is None else _After(before_id, before_ms)
    if wanted.group_ids is None or not _is_merged(connection, wanted):
        return [_run(row) for row in connection.execute(_page(connection, select(job_log), wanted, after, limit))]
    runs: list[Run] = []
    group_ids = sorted(wanted.group_ids)
    for first in range(0, len(group_ids), _GROUPS_AT_ONCE):
        some = _merged(connection, wanted, group_ids[first : first + _GROUPS_AT_ONCE], after, limit)
        runs += [_run(row) for row in connection.execute(some)]
    return sorted(runs, key=lambda run: (run.planned_ms if wanted.has_bounds else 0, run.id), reverse=True)[:limit]


@dataclass(frozen=True, slots=True)
class _After:
    """The run that the page before ended with, and its planned time where runs come by that."""

    run_id: int
    planned_ms: int | None


def _is_of_a_hidden_job(connection: Connection, wanted: RunFilter) -> bool:
    if wanted.job_id is None or wanted.group_ids is None:
        return False
    query = select(job_info.c.job_group).where(job_info.c.id == wanted.job_id)
    group_id = connection.execute(query).scalar()
    return group_id is not None and group_id not in wanted.group_ids


def _is_of_a_cause_that_never_was(connection: Connection, wanted: RunFilter) -> bool:
    if wanted.job_id is None or wanted.trigger_type is None or wanted.phase is not None:
        return False
    # Whoever looked for what is not there would read every row of the job.
    bounds = wanted.planned_from_ms, wanted.planned_until_ms
    return not has_runs_by(connection, wanted.job_id, wanted.trigger_type, *bounds)


def _is_merged(connection: Connection, wanted: RunFilter) -> bool:
    """Whether each group is asked for its page. Few runs are open or somebody's; a job or an address has one group."""
    is_few = wanted.phase is not None or wanted.trigger_type in _BY_HAND
    if is_few or wanted.job_id is not None or wanted.executor_address is not None:
        return False
    if not _is_without_success(wanted) or statements(connection).has_partial_indexes:
        return True
    # Without an index of its failures a group's page takes as long as one of all groups, or longer.
    return wanted.has_bounds and len(wanted.group_ids or ()) <= _FEW_GROUPS


def _is_without_success(wanted: RunFilter) -> bool:
    return wanted.outcome not in (None, Outcome.SUCCEEDED)


def _merged(
    connection: Connection, wanted: RunFilter, group_ids: Sequence[GroupId], after: _After | None, limit: int
) -> Select[Any]:
    """Of each group its page, and of these the page of all, in no order.

    Of several groups at once a database reads all runs, or the whole log where these groups have none lately.
    """
    columns = select(job_log.c.id, job_log.c.planned_ms)
    pages = [
        _page(connection, columns, replace(wanted, group_id=group_id, group_ids=None), after, limit).subquery()
        for group_id in group_ids
    ]
    all_pages = union_all(*(select(page) for page in pages)).subquery()
    ids = select(all_pages.c.id).order_by(*_order(wanted, all_pages)).limit(limit).subquery()
    # Without an order: SQLite, once it has statistics, would read the log in that order and look for each run's id.
    return select(job_log).join(ids, ids.c.id == job_log.c.id)


def _page(
    connection: Connection, columns: Select[Any], wanted: RunFilter, after: _After | None, limit: int
) -> Select[Any]:
    query = _filtered(columns, wanted).order_by(*_order(wanted, job_log)).limit(limit)
    index = _index_for(wanted)
    if index is not None:
        query = statements(connection).by_index(query, job_log, index)
    elif wanted.group_id is not None and wanted.has_bounds and _is_without_success(wanted):
        # It would read the runs of all groups for the failures of one; the index by group and time has the group's.
        query = statements(connection).without_index(query, job_log, "jobwheel_log_planned")
    if after is None:
        return query
    if not wanted.has_bounds:
        return query.where(job_log.c.id < after.run_id)
    # Its planned time is a value: of a subquery's a planner knows nothing.
    later = (job_log.c.planned_ms < after.planned_ms) | (job_log.c.id < after.run_id)
    return query.where(job_log.c.planned_ms <= after.planned_ms, later)


def _order(wanted: RunFilter, of: FromClause) -> list[ColumnElement[Any]]:
    by_id = of.c.id.desc()
    return [of.c.planned_ms.desc(), by_id] if wanted.has_bounds else [by_id]


def delete_runs_of_job(connection: Connection, job_id: JobId, limit: int) -> int:
    """Remove up to `limit` run rows of a job that is gone; says how many it removed."""
    chosen = select(job_log.c.id).where(job_log.c.job_id == job_id).order_by(job_log.c.id).limit(limit)
    ids = list(connection.execute(chosen).scalars())
    if ids:
        connection.execute(delete(job_log).where(job_log.c.id.in_(ids)))
        note_removed(connection, len(ids))
    return len(ids)


def _narrowed(wanted: RunFilter) -> RunFilter | None:
    """With the groups that the caller may see as the one that is asked for, where it is one; None if it is none."""
    if wanted.group_ids is None:
        return wanted
    visible = wanted.group_ids if wanted.group_id is None else wanted.group_ids & {wanted.group_id}
    if len(visible) > 1:
        return wanted
    return replace(wanted, group_id=next(iter(visible)), group_ids=None) if visible else None


def _index_for(wanted: RunFilter) -> str | None:
    """The index that is right whatever the values are; None = that depends on them."""
    if wanted.phase is not None:
        # Few runs are open at a time.
        return "jobwheel_log_owner" if wanted.job_id is None else "jobwheel_log_open"
    if wanted.group_ids is not None:
        return _index_for(replace(wanted, group_ids=None))
    if _is_without_success(wanted):
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
    if wanted.group_ids is not None:
        query = query.where(job_log.c.job_group.in_(wanted.group_ids))
    # In words of the partial indexes: a database does not see that a value it is given later is none of these.
    if _is_without_success(wanted):
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
        broadcast_id=_run_id(row.broadcast_id),
        first_run_id=_run_id(row.first_run_id),
        parent_run_id=_run_id(row.parent_run_id),
        instance_id=row.instance_id,
        unheard_ms=row.unheard_ms,
        kill_ms=row.kill_ms,
    )


def _run_id(stored: int | None) -> RunId | None:
    return None if stored is None else RunId(stored)
