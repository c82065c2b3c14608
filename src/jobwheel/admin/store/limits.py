"""The cluster-wide limit of a job: at most so many of its runs under way at once, whichever node sends them.

A run over the limit waits: pending, with `WAITING` for an owner, so that no feeder takes it, until a run of the job
ends. Take-off and the end of a run hold the job's row, so that of two at once the second sees what the first did.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import Connection, func, select, update

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import PendingRun, Phase
from jobwheel.admin.store.held_jobs import hold_limited
from jobwheel.admin.store.tables import job_log

WAITING: Final = NodeId(0)
"""The owner of a run that waits for another one of its job to end. No node has this id."""

Turn = tuple[int, RunId]
"""When a run came due (epoch ms), and which it is: the order in which runs of a job have their turn.

All shards of a broadcast have one turn, that of the run which they were made of.
"""

_WAITS = (job_log.c.phase == Phase.PENDING) & (job_log.c.owner == WAITING)
_UNDER_WAY = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)
# For a job without a limit, or with a high one: the rest is called with the next pass.
_MOST_CALLED = 10_000


@dataclass(slots=True)
class _UnderWay:
    """How many runs of a job are under way, a broadcast counted as one, and which broadcasts."""

    count: int = 0
    broadcasts: set[RunId] = field(default_factory=set)


def turn_of(run: PendingRun) -> Turn:
    return run.due_ms, run.broadcast_id or run.id


def over_limit(
    connection: Connection, wanted: Mapping[JobId, Mapping[RunId, Turn]], discarded: AbstractSet[RunId] = frozenset()
) -> set[RunId]:
    """Of the runs that are about to take off, by their jobs, those for which there is no room.

    Nor is there any for a run that comes when older ones of its job wait, and older ones that are on their way to a
    take-off of their own have their room first: those that were called come by way of the database, and would be
    overtaken each time by one that has just come due. Whoever is `discarded` without room leaves none to others. Shards
    are pending again after a stop: one whose broadcast is under way needs no room.
    """
    limits = hold_limited(connection, wanted)
    if not limits:
        return set()
    under_way = _under_way(connection, limits)
    over: set[RunId] = set()
    for job_id, limit in limits.items():
        flying = under_way[job_id]
        room = max(0, limit - flying.count)
        waits = _oldest_waiting(connection, job_id)
        need = {run_id: turn for run_id, turn in wanted[job_id].items() if turn[1] not in flying.broadcasts}
        turns = set(need.values())
        if room and need and discarded.isdisjoint(need):
            turns |= _on_their_way(connection, job_id, wanted[job_id], flying.broadcasts, room)
        found = {turn for turn in sorted(turns)[:room] if waits is None or turn <= waits}
        over.update(run_id for run_id, turn in need.items() if turn not in found)
    return over


def let_wait(connection: Connection, node_id: NodeId, run_ids: Iterable[RunId]) -> None:
    """These runs of the node wait for room."""
    connection.execute(
        update(job_log)
        .where(job_log.c.id.in_(list(run_ids)), job_log.c.phase == Phase.PENDING, job_log.c.owner == node_id)
        .values(owner=WAITING)
    )


def call_waiting(connection: Connection, node_id: NodeId, limits: Mapping[JobId, int | None]) -> int:
    """Make the node the owner of the runs that have waited longest, as many as there is room for; return how many.

    The jobs with a limit are held; one whose limit was taken off has room for all.
    """
    called = 0
    under_way = _under_way(connection, limits) if limits else {}
    for job_id, limit in limits.items():
        flying = under_way[job_id]
        room = _MOST_CALLED if limit is None else min(max(0, limit - flying.count), _MOST_CALLED)
        called += _call(connection, node_id, _shards_waiting(connection, job_id, flying.broadcasts))
        called += _call_oldest(connection, node_id, job_id, room)
    return called


def call_all(connection: Connection, node_id: NodeId) -> int:
    """The same for all jobs.

    The end of a run calls the next one; this finds what no end could: a limit that was raised, a node that died.
    """
    jobs = sorted(jobs_with_waiting(connection))
    held = hold_limited(connection, jobs)
    return call_waiting(connection, node_id, {job_id: held.get(job_id) for job_id in jobs})


def jobs_with_waiting(connection: Connection) -> list[JobId]:
    """The jobs of which runs wait for room."""
    waiting = select(job_log.c.job_id).where(_WAITS).distinct()
    return [JobId(job_id) for job_id in connection.execute(waiting).scalars()]


def _call_oldest(connection: Connection, node_id: NodeId, job_id: JobId, room: int) -> int:
    called = 0
    while room > 0:
        # In the order that an index has: a shard's id is not its turn, but near enough.
        oldest = (
            select(job_log.c.id, job_log.c.broadcast_id)
            .where(job_log.c.job_id == job_id, _WAITS)
            .order_by(job_log.c.due_ms, job_log.c.id)
            .limit(room)
        )
        rows = connection.execute(oldest).all()
        if not rows:
            break
        broadcasts = {row.broadcast_id for row in rows if row.broadcast_id is not None}
        ids = {row.id for row in rows}.union(_shards_waiting(connection, job_id, broadcasts))
        called += _call(connection, node_id, ids)
        room -= len({row.broadcast_id or row.id for row in rows})
    return called


def _shards_waiting(connection: Connection, job_id: JobId, broadcasts: Collection[RunId]) -> Sequence[RunId]:
    if not broadcasts:
        return ()
    shards = select(job_log.c.id).where(
        job_log.c.job_id == job_id, _WAITS, job_log.c.broadcast_id.in_(list(broadcasts))
    )
    return [RunId(run_id) for run_id in connection.execute(shards).scalars()]


def _call(connection: Connection, node_id: NodeId, run_ids: Collection[RunId]) -> int:
    if not run_ids:
        return 0
    waiting = update(job_log).where(job_log.c.id.in_(sorted(run_ids)), _WAITS)
    return connection.execute(waiting.values(owner=node_id)).rowcount


def _oldest_waiting(connection: Connection, job_id: JobId) -> Turn | None:
    oldest = (
        select(job_log.c.due_ms, job_log.c.id)
        .where(job_log.c.job_id == job_id, _WAITS)
        .order_by(job_log.c.due_ms, job_log.c.id)
        .limit(1)
    )
    row = connection.execute(oldest).first()
    return None if row is None else (row.due_ms, RunId(row.id))


def _on_their_way(
    connection: Connection, job_id: JobId, wanted: Mapping[RunId, Turn], broadcasts: AbstractSet[RunId], most: int
) -> set[Turn]:
    """The turns of other runs of the job that some node holds, and which are older than the last that is wanted."""
    last_ms, _ = max(wanted.values())
    older = (
        select(job_log.c.due_ms, job_log.c.id, job_log.c.broadcast_id)
        .where(job_log.c.job_id == job_id, job_log.c.phase == Phase.PENDING, job_log.c.owner != WAITING)
        .where(job_log.c.due_ms <= last_ms, job_log.c.id.not_in(list(wanted)))
        .order_by(job_log.c.due_ms, job_log.c.id)
        .limit(most)
    )
    rows = connection.execute(older).all()
    return {(row.due_ms, RunId(row.broadcast_id or row.id)) for row in rows if row.broadcast_id not in broadcasts}


def _under_way(connection: Connection, job_ids: Iterable[JobId]) -> dict[JobId, _UnderWay]:
    found = {job_id: _UnderWay() for job_id in job_ids}
    counted = (
        select(job_log.c.job_id, job_log.c.broadcast_id, func.count())
        .where(job_log.c.job_id.in_(list(found)), job_log.c.phase.in_(_UNDER_WAY))
        .group_by(job_log.c.job_id, job_log.c.broadcast_id)
    )
    for job_id, broadcast_id, count in connection.execute(counted):
        if broadcast_id is not None:
            found[job_id].broadcasts.add(broadcast_id)
        found[job_id].count += count if broadcast_id is None else 1
    return found
