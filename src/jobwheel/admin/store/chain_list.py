"""A run's chain as people read it: what it comes of, and what came of it."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, and_, select, true

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Chain, Outcome, Phase, RelatedRun, Run, Shard, TriggerType
from jobwheel.admin.store.chains import BROADCAST, FIRST, PARENT
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_log

MOST_RELATED = 1_000
"""How many runs of each kind are shown: the oldest."""

_COLUMNS = (
    job_log.c.id,
    job_log.c.job_id,
    job_log.c.trigger_type,
    job_log.c.attempt,
    job_log.c.executor_sharding_param,
    job_log.c.phase,
    job_log.c.outcome,
    job_log.c.planned_ms,
    job_log.c.due_ms,
    job_log.c.ended_ms,
    job_log.c.executor_address,
)


def load_chain(connection: Connection, run: Run, group_ids: Collection[GroupId] | None = None) -> Chain:
    """The runs that have to do with this one; those of these groups alone if they are given."""
    own = true() if group_ids is None else job_log.c.job_group.in_(group_ids)
    first = run.first_run_id or run.id
    firsts = _related(connection, PRIMARY_KEY, and_(job_log.c.id == first, own))
    attempts = [*firsts, *_related(connection, FIRST, and_(job_log.c.first_run_id == first, own))]
    shards = []
    if run.broadcast_id is not None:
        shards = _related(connection, BROADCAST, and_(job_log.c.broadcast_id == run.broadcast_id, own))
    parents = []
    if run.parent_run_id is not None:
        parents = _related(connection, PRIMARY_KEY, and_(job_log.c.id == run.parent_run_id, own))
    family = {each.id for each in (*attempts, *shards)} | {run.id}
    return Chain(parents[0] if parents else None, attempts, shards, _children(connection, family, own))


def _children(connection: Connection, family: Collection[RunId], own: ColumnElement[bool]) -> list[RelatedRun]:
    return _related(connection, PARENT, and_(job_log.c.parent_run_id.in_(sorted(family)), own))


def _related(connection: Connection, index: str, which: ColumnElement[bool]) -> list[RelatedRun]:
    query: Select[Any] = select(*_COLUMNS).where(which).order_by(job_log.c.id).limit(MOST_RELATED)
    query = statements(connection).by_index(query, job_log, index)
    return [_run(row) for row in connection.execute(query).all()]


def _run(row: Row[Any]) -> RelatedRun:
    return RelatedRun(
        id=RunId(row.id),
        job_id=JobId(row.job_id),
        trigger_type=TriggerType(row.trigger_type) if row.trigger_type in set(TriggerType) else None,
        attempt=row.attempt,
        shard=Shard.parse(row.executor_sharding_param),
        phase=Phase(row.phase) if row.phase in set(Phase) else None,
        outcome=Outcome(row.outcome) if row.outcome in set(Outcome) else None,
        planned_ms=row.planned_ms,
        due_ms=row.due_ms,
        ended_ms=row.ended_ms,
        executor_address=row.executor_address,
    )
