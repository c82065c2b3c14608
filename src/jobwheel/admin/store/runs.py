"""Pending runs: written by their causes, read by the feeder, removed by stop, edit and delete."""

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, func, select, update

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.policies import GlueType, RouteStrategy
from jobwheel.admin.domain.run import NewRun, PendingRun, Phase, Shard, TriggerType
from jobwheel.admin.store.dialects import Statements, statements
from jobwheel.admin.store.scripts import load_scripts
from jobwheel.admin.store.sound import SoundRows, with_values
from jobwheel.admin.store.tables import job_info, job_log
from jobwheel.admin.store.zone import InstallationZone

_SCHEDULE_CAUSED = [trigger_type.value for trigger_type in TriggerType if trigger_type.by_schedule]

_SLICE = 1000

_PENDING_COLUMNS = (
    job_log.c.id,
    job_log.c.job_id,
    job_log.c.job_group,
    job_log.c.trigger_type,
    job_log.c.planned_ms,
    job_log.c.due_ms,
    job_log.c.triggered_ms,
    job_log.c.executor_param,
    job_log.c.named_addresses,
    job_log.c.attempt,
    job_log.c.executor_sharding_param,
    job_log.c.executor_address,
    job_log.c.broadcast_id,
    job_log.c.parent_run_id,
    job_log.c.executor_fail_retry_count,
)


# In the order of DispatchJob's fields.
_DISPATCH_COLUMNS = (
    job_info.c.id,
    job_info.c.job_group,
    job_info.c.executor_handler,
    job_info.c.executor_route_strategy,
    job_info.c.executor_block_strategy,
    job_info.c.executor_timeout,
    job_info.c.glue_type,
    job_info.c.executor_fail_retry_count,
    job_info.c.run_limit,
    job_info.c.run_limit_overflow,
    job_info.c.uncertain_send,
)
_WITHOUT_VALUE = {
    "executor_handler": "",
    "executor_route_strategy": RouteStrategy.FIRST.value,
    "executor_block_strategy": "",
}
_SOUND_JOB = SoundRows(*_DISPATCH_COLUMNS)


@dataclass(frozen=True, slots=True)
class RemovedRun:
    """A pending run that a stop, edit or delete took away."""

    id: RunId
    planned_ms: int


def insert_runs(connection: Connection, zone: InstallationZone, runs: Sequence[NewRun]) -> list[PendingRun]:
    """Write pending runs in the transaction of their cause; they may fly once it is committed."""
    if not runs:
        return []
    ids = statements(connection).insert_runs(connection, zone, runs)
    return [_written(run_id, run) for run_id, run in zip(ids, runs, strict=True)]


def remove_planned(connection: Connection, job_id: JobId, after_ms: int) -> list[RemovedRun]:
    """Remove a job's pending runs that its schedule caused and that were planned after the moment."""
    planned = (
        (job_log.c.job_id == job_id)
        & (job_log.c.phase == Phase.PENDING)
        & job_log.c.trigger_type.in_(_SCHEDULE_CAUSED)
        & (job_log.c.planned_ms > after_ms)
    )
    return _remove(connection, planned)


def remove_pending(connection: Connection, job_id: JobId) -> list[RemovedRun]:
    """Remove all pending runs of a job, whatever caused them."""
    pending = (job_log.c.job_id == job_id) & (job_log.c.phase == Phase.PENDING)
    return _remove(connection, pending)


def remove_backfill(connection: Connection, job_id: JobId) -> list[RemovedRun]:
    """Remove a job's pending runs that somebody made for past times."""
    backfill = (
        (job_log.c.job_id == job_id)
        & (job_log.c.phase == Phase.PENDING)
        & (job_log.c.trigger_type == TriggerType.BACKFILL)
    )
    return _remove(connection, backfill)


def remove_runs_without_job(connection: Connection, node_id: NodeId, run_ids: Sequence[RunId]) -> None:
    """Remove pending runs whose job is gone by take-off."""
    connection.execute(
        delete(job_log).where(job_log.c.id.in_(run_ids), job_log.c.phase == Phase.PENDING, job_log.c.owner == node_id)
    )


def has_open_runs(connection: Connection, job_id: JobId) -> bool:
    """Whether a run of the job is not done yet."""
    open_run = select(job_log.c.id).where(job_log.c.job_id == job_id, job_log.c.phase.is_not(None)).limit(1)
    return connection.execute(open_run).first() is not None


def adopt_ownerless(connection: Connection, node_id: NodeId, due_before_ms: int, most: int) -> int:
    """Make this node the owner of pending runs that nobody owns; return how many."""
    chosen = (
        select(job_log.c.id)
        .where(job_log.c.phase == Phase.PENDING, job_log.c.owner.is_(None), job_log.c.due_ms <= due_before_ms)
        .order_by(job_log.c.due_ms)
        .limit(most)
    )
    ids = connection.execute(chosen).scalars().all()
    if not ids:
        return 0
    adopted = connection.execute(
        update(job_log)
        .where(job_log.c.id.in_(ids), job_log.c.phase == Phase.PENDING, job_log.c.owner.is_(None))
        .values(owner=node_id)
    )
    return adopted.rowcount


def has_ownerless(connection: Connection, due_before_ms: int) -> bool:
    """Whether a pending run that nobody owns comes due."""
    ownerless = (
        select(job_log.c.id)
        .where(job_log.c.phase == Phase.PENDING, job_log.c.owner.is_(None), job_log.c.due_ms <= due_before_ms)
        .limit(1)
    )
    return connection.execute(ownerless).first() is not None


def own_pending_ids(
    connection: Connection, node_id: NodeId, due_before_ms: int, most: int, without_jobs: Sequence[JobId] = ()
) -> list[RunId]:
    """The node's pending runs that come due, the earliest first; those of some jobs may be left out.

    From the index alone, so that it costs little, unless jobs are left out.
    """
    return statements(connection).own_due(connection, node_id, due_before_ms, most, without_jobs)


def count_own_due(connection: Connection, node_id: NodeId, due_before_ms: int, most: int) -> int:
    """How many pending runs of the node have come due; counted up to `most`."""
    due = (
        select(job_log.c.id)
        .where(job_log.c.phase == Phase.PENDING, job_log.c.owner == node_id, job_log.c.due_ms <= due_before_ms)
        .limit(most)
        .subquery()
    )
    return connection.execute(select(func.count()).select_from(due)).scalar_one()


def load_pending(connection: Connection, node_id: NodeId, run_ids: Sequence[RunId]) -> list[PendingRun]:
    """What the engine holds of these runs, of those that are still the node's and pending."""
    hot = statements(connection)
    # mypy takes no protocol for hashable.
    query = _pending_runs(hot)  # type: ignore[arg-type]
    rows = hot.all_rows(connection, query, {"run_ids": list(run_ids), "node_id": node_id})
    return [_pending(*row) for row in rows]


def release_pending(connection: Connection, node_id: NodeId) -> int:
    """A graceful stop: the node's pending runs belong to nobody, and the next feeder adopts them."""
    released = connection.execute(
        update(job_log).where(job_log.c.phase == Phase.PENDING, job_log.c.owner == node_id).values(owner=None)
    )
    return released.rowcount


def load_dispatch_jobs(
    connection: Connection, zone: InstallationZone, job_ids: Collection[JobId]
) -> dict[JobId, DispatchJob]:
    """How runs of these jobs are sent, as it stands now; jobs that are gone are not in the answer."""
    hot = statements(connection)
    # mypy takes no protocol for hashable.
    query = _dispatch_jobs(hot)  # type: ignore[arg-type]
    rows = hot.all_rows(connection, query, {"job_ids": list(job_ids)})
    jobs = {JobId(row[0]): _dispatch_job(row) for row in rows}
    with_script = [job_id for job_id, job in jobs.items() if job.glue_type != GlueType.BEAN]
    if with_script:
        for job_id, (script, damage) in load_scripts(connection, zone, with_script).items():
            before = jobs[job_id]
            jobs[job_id] = msgspec.structs.replace(before, script=script, damage=before.damage or damage)
    return jobs


def _dispatch_job(row: Sequence[Any]) -> DispatchJob:
    sound, damage = _SOUND_JOB.mended(row)
    job = DispatchJob(*sound)
    return job if damage is None else msgspec.structs.replace(job, damage=damage)


@functools.cache
def _dispatch_jobs(hot: Statements) -> Select[Any]:
    return select(*with_values(_DISPATCH_COLUMNS, _WITHOUT_VALUE)).where(hot.among(job_info.c.id, "job_ids"))


@functools.cache
def _pending_runs(hot: Statements) -> Select[Any]:
    return select(*_PENDING_COLUMNS).where(
        hot.among(job_log.c.id, "run_ids"), job_log.c.phase == Phase.PENDING, job_log.c.owner == bindparam("node_id")
    )


def _pending(  # noqa: PLR0913, PLR0917 - a row, in the order of `_PENDING_COLUMNS`
    run_id: int,
    job_id: int,
    group_id: int,
    trigger_type: str,
    planned_ms: int,
    due_ms: int,
    triggered_ms: int,
    parameter: str | None,
    named_addresses: str | None,
    attempt: int,
    shard: str | None,
    address: str | None,
    broadcast_id: int | None,
    parent_run_id: int | None,
    retries_left: int,
) -> PendingRun:
    return PendingRun(
        id=RunId(run_id),
        job_id=JobId(job_id),
        group_id=GroupId(group_id),
        trigger_type=TriggerType(trigger_type),
        planned_ms=planned_ms,
        due_ms=due_ms,
        triggered_ms=triggered_ms,
        parameter=parameter or "",
        named_addresses=tuple(named_addresses.split(",")) if named_addresses else (),
        attempt=attempt,
        shard=Shard.parse(shard),
        address=address or "",
        broadcast_id=None if broadcast_id is None else RunId(broadcast_id),
        parent_run_id=None if parent_run_id is None else RunId(parent_run_id),
        retries_left=retries_left,
    )


def _written(run_id: RunId, run: NewRun) -> PendingRun:
    pending = PendingRun(
        id=run_id,
        job_id=run.job_id,
        group_id=run.group_id,
        trigger_type=run.trigger_type,
        planned_ms=run.planned_ms,
        due_ms=run.due_ms,
        triggered_ms=run.triggered_ms,
        parameter=run.parameter,
        named_addresses=run.named_addresses,
        attempt=run.attempt,
        shard=run.shard,
        broadcast_id=run.broadcast_id,
    )
    lineage = run.lineage
    if lineage is None:
        return pending
    return msgspec.structs.replace(
        pending,
        address=lineage.address,
        parent_run_id=lineage.parent_run_id,
        retries_left=lineage.retries_left,
    )


def _remove(connection: Connection, condition: ColumnElement[bool]) -> list[RemovedRun]:
    # Not every database can say what a DELETE removed: the rows are held first.
    chosen = select(job_log.c.id, job_log.c.planned_ms).where(condition).order_by(job_log.c.id).with_for_update()
    chosen = statements(connection).by_index(chosen, job_log, "jobwheel_log_open")
    removed = [RemovedRun(RunId(row.id), row.planned_ms) for row in connection.execute(chosen)]
    for first in range(0, len(removed), _SLICE):
        ids = [run.id for run in removed[first : first + _SLICE]]
        connection.execute(delete(job_log).where(job_log.c.id.in_(ids)))
    return sorted(removed, key=lambda run: run.planned_ms)
