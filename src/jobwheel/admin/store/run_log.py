"""The run log's hot writes: take-off, and everything that follows it, in batches."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, case, select, update

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.domain.writes import (
    Accepted,
    Applied,
    Cancelled,
    Ended,
    RunWrite,
    Settlement,
    TakeBack,
    TakeOff,
    Unanswered,
    Unconfirmed,
    Unsent,
)
from jobwheel.admin.store import limits
from jobwheel.admin.store.chains import lost_among
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.followups import Before, follow_up, late_line
from jobwheel.admin.store.held_jobs import hold_jobs_of
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.schedule import Language


def take_off(connection: Connection, node_id: NodeId, sent_ms: int, runs: Sequence[TakeOff]) -> set[RunId]:
    """Pending → sending for the runs that are still pending and the node's; only these may be sent."""
    return statements(connection).take_off(connection, node_id, sent_ms, runs)


def redirect(connection: Connection, node_id: NodeId, moves: Sequence[tuple[TakeOff, str]]) -> set[RunId]:
    """Give runs being sent other addresses than those that they had; only what is returned may be sent there."""
    hot = statements(connection)
    # In the order of their ids: see the lock order of `storage.md`.
    ordered = sorted(moves, key=lambda move: move[0].run_id)
    return {run.run_id for run, before in ordered if hot.redirect(connection, node_id, run, before)}


def take_back(connection: Connection, takes: Sequence[TakeBack]) -> int:
    """Sending → pending for runs of which certainly nothing was written; return how many.

    It can be made again: what has taken off anew meanwhile did so at another time, and stays as it is.
    """
    take_offs = defaultdict[tuple[NodeId, int], list[TakeBack]](list)
    for each in takes:
        take_offs[each.owner, each.sent_ms].append(each)
    return sum(_take_back(connection, owner, sent_ms, each) for (owner, sent_ms), each in take_offs.items())


def _take_back(connection: Connection, owner: NodeId, sent_ms: int, takes: Sequence[TakeBack]) -> int:
    theirs = job_log.c.id.in_([each.run_id for each in takes])
    broadcasts = [each.run_id for each in takes if each.is_broadcast]
    taken = connection.execute(
        update(job_log)
        .where(theirs | job_log.c.broadcast_id.in_(broadcasts) if broadcasts else theirs)
        .where(job_log.c.phase == Phase.SENDING, job_log.c.owner == owner, job_log.c.sent_ms == sent_ms)
        .values(
            phase=Phase.PENDING,
            # A shard goes to the address that it had.
            executor_address=case((job_log.c.executor_sharding_param.is_not(None), job_log.c.executor_address)),
            instance_id=None,
            sent_ms=None,
            # One that a kill was asked for meanwhile never takes off: the recovery ends it.
            check_ms=job_log.c.kill_ms,
        )
    )
    return taken.rowcount


def end_unsent(connection: Connection, node_id: NodeId, runs: Sequence[Unsent]) -> list[Ended]:
    """Sending or unconfirmed → done, without a result; return those that matched."""
    return statements(connection).end_unsent(connection, node_id, runs)


def apply(
    connection: Connection,
    zone: InstallationZone,
    node_id: NodeId,
    writes: Sequence[RunWrite],
    language: Language = Language.EN,
    fast_ms: int = 0,
) -> Applied:
    """Apply a batch: answers before results, so that a result in the same batch finds its run accepted.

    Rows are touched in the order of their ids within each kind (see the lock order of `storage.md`). What follows the
    end of a run is written with it; `language` is that of the lines which say so in the run's message. The clock by
    which the runs ended is `fast_ms` ahead of that by which other nodes plan: from their ends jobs count by the latter.
    """
    ordered = sorted(writes, key=lambda write: write.run_id)
    hot = statements(connection)
    accepted, settlements = _joined(ordered)
    before = _before(connection, ordered, settlements)
    hot.accept(connection, node_id, accepted)
    hot.mark_unconfirmed(connection, node_id, [write for write in ordered if isinstance(write, Unconfirmed)])
    ended = hot.end_unsent(connection, node_id, [write for write in ordered if isinstance(write, Unsent)])
    settled = hot.settle(connection, zone, settlements, late_line(language))
    matched = {each.run_id for each in settled}
    late = [each.accepted for each in settlements if each.accepted is not None and each.run_id not in matched]
    hot.accept(connection, node_id, late)
    ended += settled
    ended += _end_without_result(connection, zone, node_id, ordered)
    pending = follow_up(connection, zone, node_id, ended, before, language)
    held = before.held
    ends: dict[JobId, int] = {}
    for each in ended:
        ends[each.job_id] = max(each.ended_ms, ends.get(each.job_id, 0))
    freed = {job_id: limit for job_id, limit in held.limits.items() if job_id in ends}
    called = limits.call_waiting(connection, node_id, freed)
    awaited = {job_id: ended_ms - fast_ms for job_id, ended_ms in ends.items() if job_id in held.awaiting}
    return Applied(ended, hot.reschedule_fix_delay(connection, awaited), called > 0, pending)


def _before(connection: Connection, ordered: Sequence[RunWrite], settlements: Sequence[Settlement]) -> Before:
    """Hold the jobs for which the ends mean something, before any run, and see which runs are lost already."""
    ending = [write.run_id for write in ordered if isinstance(write, Unsent | Unanswered | Cancelled | Settlement)]
    succeeding = [write.run_id for write in settlements if write.outcome is Outcome.SUCCEEDED]
    failing = [write.run_id for write in settlements if write.outcome is not Outcome.SUCCEEDED]
    held = hold_jobs_of(connection, ending, succeeding)
    return Before(held, lost_among(connection, failing))


def _end_without_result(
    connection: Connection, zone: InstallationZone, node_id: NodeId, ordered: Sequence[RunWrite]
) -> list[Ended]:
    """After the results: of a run that has one in the same batch, that is how it ended."""
    unanswered = [write for write in ordered if isinstance(write, Unanswered)]
    cancelled = [write for write in ordered if isinstance(write, Cancelled)]
    if not unanswered and not cancelled:
        return []
    hot = statements(connection)
    ended = hot.end_unanswered(connection, zone, unanswered)
    return ended + hot.cancel(connection, zone, node_id, cancelled)


def _joined(ordered: Sequence[RunWrite]) -> tuple[list[Accepted], list[Settlement]]:
    """The executors' answers and the results; a run that has both is written once."""
    answers = {write.run_id: write for write in ordered if isinstance(write, Accepted)}
    settlements = []
    for write in ordered:
        if isinstance(write, Settlement):
            # A run may have more than one, of which the first need not count: it may be of another group's credentials.
            accepted = answers.get(write.run_id)
            settlements.append(write if accepted is None else msgspec.structs.replace(write, accepted=accepted))
    joined = {id(write.accepted) for write in settlements}
    return [write for write in ordered if isinstance(write, Accepted) and id(write) not in joined], settlements


def is_sending(connection: Connection, node_id: NodeId, run_id: RunId) -> bool:
    """Whether the run is being sent, and by this node."""
    mine = select(job_log.c.id).where(
        job_log.c.id == run_id, job_log.c.phase == Phase.SENDING, job_log.c.owner == node_id
    )
    return connection.execute(mine).first() is not None


@dataclass(frozen=True, slots=True)
class SendingRun:
    """A run that is being sent; one without an address took off only to fail."""

    id: RunId
    address: str
    sent_ms: int


def sending_since(connection: Connection, node_id: NodeId, before_ms: int, most: int) -> list[SendingRun]:
    """The node's runs that have been being sent since before the moment."""
    rows = connection.execute(
        select(job_log.c.id, job_log.c.executor_address, job_log.c.sent_ms)
        .where(job_log.c.phase == Phase.SENDING, job_log.c.owner == node_id, job_log.c.sent_ms < before_ms)
        .limit(most)
    )
    return [SendingRun(RunId(row.id), row.executor_address or "", row.sent_ms) for row in rows]
