"""The take-off: one transaction that says which runs of a batch fly, and makes the shards of broadcasts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, update

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import NewRun, Outcome, PendingRun
from jobwheel.admin.domain.writes import Ended, TakeOff, Unsent, cut_message
from jobwheel.admin.store import followups, limits, run_log, runs
from jobwheel.admin.store.held_jobs import HeldJobs
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.schedule import Language


@dataclass(frozen=True, slots=True)
class Broadcast:
    """A run that becomes shard 0 of a broadcast: the rows of the other shards, and where each of them goes."""

    run_id: RunId
    shards: Sequence[NewRun]
    addresses: Sequence[TakeOff]


@dataclass(frozen=True, slots=True)
class Batch:
    """What is to take off.

    Attributes:
        take_offs: the runs and their addresses.
        limited: of these the runs of jobs that have a limit, and when each has its turn.
        discards: of these the runs that do not wait for room, and what is said of one that finds none.
        broadcasts: of these the runs that are broadcast.
        orphans: runs whose job is gone.
    """

    take_offs: Sequence[TakeOff]
    limited: Mapping[JobId, Mapping[RunId, limits.Turn]] = field(default_factory=dict)
    discards: Mapping[RunId, str] = field(default_factory=dict)
    broadcasts: Sequence[Broadcast] = ()
    orphans: Sequence[RunId] = ()


@dataclass(frozen=True, slots=True)
class TakenOff:
    """What came of it.

    Attributes:
        matched: the runs that took off; only these may be sent.
        discarded: the runs that it ended, because there was no room for them and they do not wait.
        shards: the shards that were made of a broadcast, in order of their index.
    """

    matched: set[RunId]
    discarded: Sequence[Ended] = ()
    shards: Mapping[RunId, Sequence[PendingRun]] = field(default_factory=dict)


def take_off(connection: Connection, zone: InstallationZone, node_id: NodeId, sent_ms: int, batch: Batch) -> TakenOff:
    """Move the batch from pending to sending, as far as it still is the node's and there is room for it."""
    over = limits.over_limit(connection, batch.limited, batch.discards.keys()) if batch.limited else set()
    waiting = over - batch.discards.keys()
    if waiting:
        limits.let_wait(connection, node_id, waiting)
    if batch.orphans:
        runs.remove_runs_without_job(connection, node_id, batch.orphans)
    flying = [each for each in batch.take_offs if each.run_id not in waiting] if waiting else batch.take_offs
    matched = run_log.take_off(connection, node_id, sent_ms, flying) if flying else set()
    discarded = _discard(connection, node_id, sent_ms, batch.discards, matched & over)
    if discarded:
        # They are not tried again; somebody may want to be told.
        followups.follow_up(connection, zone, node_id, discarded, followups.Before(HeldJobs()), Language.EN)
    matched -= over
    shards = {
        each.run_id: _make_shards(connection, zone, node_id, sent_ms, each)
        for each in batch.broadcasts
        if each.run_id in matched
    }
    return TakenOff(matched, discarded, shards)


def _discard(
    connection: Connection, node_id: NodeId, now_ms: int, messages: Mapping[RunId, str], run_ids: set[RunId]
) -> list[Ended]:
    """End runs that took off, and were over the limit.

    Whoever ended them later might die before, and an heir would send them. They leave nothing to others: what fills the
    limit is under way still, and its end calls who waits and gives a FIX_DELAY job its next time.
    """
    ends = [Unsent(run_id, now_ms, 500, Outcome.DISCARDED, cut_message(messages[run_id])) for run_id in sorted(run_ids)]
    return run_log.end_unsent(connection, node_id, ends) if ends else []


def _make_shards(
    connection: Connection, zone: InstallationZone, node_id: NodeId, sent_ms: int, broadcast: Broadcast
) -> list[PendingRun]:
    total = len(broadcast.shards) + 1
    connection.execute(
        update(job_log)
        .where(job_log.c.id == broadcast.run_id)
        .values(executor_sharding_param=f"0/{total}", broadcast_id=broadcast.run_id)
    )
    made = runs.insert_runs(connection, zone, broadcast.shards)
    addresses = [
        TakeOff(run.id, each.address, each.handler, each.route, each.instance_id)
        for run, each in zip(made, broadcast.addresses, strict=True)
    ]
    if addresses:
        run_log.take_off(connection, node_id, sent_ms, addresses)
    return made
