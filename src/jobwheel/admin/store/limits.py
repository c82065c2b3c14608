"""The cluster-wide limit of a job: at most so many of its runs under way at once, whichever node sends them.

A run over the limit waits: pending, with `WAITING` for an owner, so that no feeder takes it, until a run of the job
ends. Take-off and the end of a run hold the job's row, so that of two at once the second sees what the first did.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection, distinct, func, select, update

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.store.tables import job_info, job_log

WAITING: Final = NodeId(0)
"""The owner of a run that waits for another one of its job to end. No node has this id."""

Turn = tuple[int, RunId]
"""When a run came due (epoch ms), and which it is: the order in which runs of a job have their turn."""

_UNDER_WAY = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)


def over_limit(connection: Connection, wanted: Mapping[JobId, Sequence[Turn]]) -> set[RunId]:
    """Of the runs that are about to take off, by their jobs, those for which there is no room.

    Nor is there any for a run that comes when older ones of its job wait.
    """
    limits = _hold(connection, wanted)
    if not limits:
        return set()
    under_way = _count_under_way(connection, limits)
    over: set[RunId] = set()
    for job_id, limit in limits.items():
        room = max(0, limit - under_way.get(job_id, 0))
        waits = _oldest_waiting(connection, job_id)
        turns = sorted(wanted[job_id])
        over.update(run_id for _, run_id in turns[room:])
        over.update(turn[1] for turn in turns[:room] if waits is not None and turn > waits)
    return over


def let_wait(connection: Connection, node_id: NodeId, run_ids: Iterable[RunId]) -> None:
    """These runs of the node wait for room."""
    connection.execute(
        update(job_log)
        .where(job_log.c.id.in_(list(run_ids)), job_log.c.phase == Phase.PENDING, job_log.c.owner == node_id)
        .values(owner=WAITING)
    )


def hold_jobs_of(connection: Connection, run_ids: Sequence[RunId]) -> list[JobId]:
    """Hold the jobs with a limit among the jobs of these runs, before any of the runs; return them."""
    any_limit = select(job_info.c.id).where(job_info.c.run_limit.is_not(None)).limit(1)
    if not run_ids or connection.execute(any_limit).first() is None:
        return []
    jobs = select(job_log.c.job_id).where(job_log.c.id.in_(run_ids)).distinct()
    return list(_hold(connection, [JobId(job_id) for job_id in connection.execute(jobs).scalars()]))


def call_waiting(connection: Connection, node_id: NodeId, job_ids: Iterable[JobId]) -> int:
    """Make the node the owner of the runs that have waited longest, as many as there is room for; return how many."""
    called = 0
    jobs = list(job_ids)
    if not jobs:
        return 0
    limits = _hold(connection, jobs)
    under_way = _count_under_way(connection, limits)
    for job_id in jobs:
        limit = limits.get(job_id)
        room = None if limit is None else max(0, limit - under_way.get(job_id, 0))
        called += _call(connection, node_id, job_id, room)
    return called


def jobs_with_waiting(connection: Connection) -> list[JobId]:
    """The jobs of which runs wait for room."""
    waiting = select(job_log.c.job_id).where(job_log.c.phase == Phase.PENDING, job_log.c.owner == WAITING).distinct()
    return [JobId(job_id) for job_id in connection.execute(waiting).scalars()]


def _call(connection: Connection, node_id: NodeId, job_id: JobId, room: int | None) -> int:
    waiting = (job_log.c.job_id == job_id) & (job_log.c.phase == Phase.PENDING) & (job_log.c.owner == WAITING)
    oldest = select(job_log.c.id).where(waiting).order_by(job_log.c.due_ms, job_log.c.id).limit(room)
    ids = connection.execute(oldest).scalars().all() if room != 0 else ()
    if not ids:
        return 0
    # The limit of a job whose limit was taken off is no limit: all of them are called.
    return connection.execute(update(job_log).where(job_log.c.id.in_(ids), waiting).values(owner=node_id)).rowcount


def _oldest_waiting(connection: Connection, job_id: JobId) -> Turn | None:
    oldest = (
        select(job_log.c.due_ms, job_log.c.id)
        .where(job_log.c.job_id == job_id, job_log.c.phase == Phase.PENDING, job_log.c.owner == WAITING)
        .order_by(job_log.c.due_ms, job_log.c.id)
        .limit(1)
    )
    row = connection.execute(oldest).first()
    return None if row is None else (row.due_ms, RunId(row.id))


def _hold(connection: Connection, job_ids: Iterable[JobId]) -> dict[JobId, int]:
    limited = (
        select(job_info.c.id, job_info.c.run_limit)
        .where(job_info.c.id.in_(list(job_ids)), job_info.c.run_limit.is_not(None))
        .order_by(job_info.c.id)
        .with_for_update()
    )
    return {JobId(row.id): row.run_limit for row in connection.execute(limited)}


def _count_under_way(connection: Connection, job_ids: Iterable[JobId]) -> dict[JobId, int]:
    """How many runs of each job are under way; a broadcast counts as one."""
    counted = (
        select(job_log.c.job_id, func.count(distinct(func.coalesce(job_log.c.broadcast_id, job_log.c.id))))
        .where(job_log.c.job_id.in_(list(job_ids)), job_log.c.phase.in_(_UNDER_WAY))
        .group_by(job_log.c.job_id)
    )
    return {JobId(job_id): count for job_id, count in connection.execute(counted)}
