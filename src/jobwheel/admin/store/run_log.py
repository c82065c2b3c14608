"""The run log's hot writes: take-off, and everything that follows it, in batches."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, case, func, select, update

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import Phase, Shard, TriggerType
from jobwheel.admin.domain.writes import (
    Accepted,
    Applied,
    Ended,
    RunWrite,
    Settlement,
    TakeBack,
    TakeOff,
    Unconfirmed,
    Unsent,
)
from jobwheel.admin.store import limits
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.held_jobs import hold_jobs_of
from jobwheel.admin.store.tables import job_log
from jobwheel.admin.store.zone import InstallationZone


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
        )
    )
    return taken.rowcount


def end_unsent(connection: Connection, node_id: NodeId, runs: Sequence[Unsent]) -> list[Ended]:
    """Sending or unconfirmed → done, without a result; return those that matched."""
    return statements(connection).end_unsent(connection, node_id, runs)


def apply(connection: Connection, zone: InstallationZone, node_id: NodeId, writes: Sequence[RunWrite]) -> Applied:
    """Apply a batch: answers before results, so that a result in the same batch finds its run accepted.

    Rows are touched in the order of their ids within each kind (see the lock order of `storage.md`).
    """
    ordered = sorted(writes, key=lambda write: write.run_id)
    hot = statements(connection)
    ending = [write.run_id for write in ordered if isinstance(write, Unsent | Settlement)]
    held = hold_jobs_of(connection, ending)
    accepted, settlements = _joined(ordered)
    hot.accept(connection, node_id, accepted)
    hot.mark_unconfirmed(connection, node_id, [write for write in ordered if isinstance(write, Unconfirmed)])
    ended = hot.end_unsent(connection, node_id, [write for write in ordered if isinstance(write, Unsent)])
    settled = hot.settle(connection, zone, settlements)
    matched = {each.run_id for each in settled}
    late = [each.accepted for each in settlements if each.accepted is not None and each.run_id not in matched]
    hot.accept(connection, node_id, late)
    ended += settled
    ends: dict[JobId, int] = {}
    for each in ended:
        ends[each.job_id] = max(each.ended_ms, ends.get(each.job_id, 0))
    freed = {job_id: limit for job_id, limit in held.limits.items() if job_id in ends}
    called = limits.call_waiting(connection, node_id, freed)
    awaited = {job_id: ended_ms for job_id, ended_ms in ends.items() if job_id in held.awaiting}
    return Applied(ended, hot.reschedule_fix_delay(connection, awaited), called > 0)


def _joined(ordered: Sequence[RunWrite]) -> tuple[list[Accepted], list[Settlement]]:
    """The executors' answers and the results; a run that has both is written once."""
    answers = {write.run_id: write for write in ordered if isinstance(write, Accepted)}
    settlements = []
    for write in ordered:
        if isinstance(write, Settlement):
            accepted = answers.pop(write.run_id, None)
            settlements.append(write if accepted is None else msgspec.structs.replace(write, accepted=accepted))
    joined = {id(write.accepted) for write in settlements}
    return [write for write in ordered if isinstance(write, Accepted) and id(write) not in joined], settlements


@dataclass(frozen=True, slots=True)
class UnconfirmedRun:
    """A run that may or may not have arrived, as the recovery looks at it. Times are epoch milliseconds."""

    id: RunId
    job_id: JobId
    group_id: GroupId
    trigger_type: TriggerType
    planned_ms: int
    triggered_ms: int
    parameter: str
    attempt: int
    address: str
    handler: str
    instance_id: str | None
    unheard_ms: int
    check_ms: int
    idle_answers: int
    is_named: bool
    shard: Shard | None


def due_unconfirmed(connection: Connection, now_ms: int, most: int) -> list[UnconfirmedRun]:
    """Unconfirmed runs that are to be looked at now."""
    rows = connection.execute(
        select(job_log)
        # The call keeps the database from looking the phase up in an index: few of all unconfirmed runs are due.
        .where(job_log.c.check_ms <= now_ms, func.coalesce(job_log.c.phase, "") == Phase.UNCONFIRMED)
        .order_by(job_log.c.check_ms)
        .limit(most)
    )
    return [
        UnconfirmedRun(
            id=RunId(row.id),
            job_id=JobId(row.job_id),
            group_id=GroupId(row.job_group),
            trigger_type=TriggerType(row.trigger_type),
            planned_ms=row.planned_ms,
            triggered_ms=row.triggered_ms,
            parameter=row.executor_param or "",
            attempt=row.attempt,
            address=row.executor_address or "",
            handler=row.executor_handler or "",
            instance_id=row.instance_id,
            unheard_ms=row.unheard_ms,
            check_ms=row.check_ms,
            idle_answers=row.idle_answers,
            is_named=bool(row.named_addresses),
            shard=Shard.parse(row.executor_sharding_param),
        )
        for row in rows
    ]


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


@dataclass(frozen=True, slots=True)
class CheckLater:
    """Moves an unconfirmed run's next look on; whoever moves it first does the look."""

    run_id: RunId
    read_check_ms: int
    check_ms: int


def check_later(connection: Connection, moves: Sequence[CheckLater]) -> set[RunId]:
    """Take these runs to be looked at now; return those that no other node took first."""
    taken = set()
    for move in moves:
        changed = connection.execute(
            update(job_log)
            .where(
                job_log.c.id == move.run_id,
                job_log.c.phase == Phase.UNCONFIRMED,
                job_log.c.check_ms == move.read_check_ms,
            )
            .values(check_ms=move.check_ms)
        )
        if changed.rowcount == 1:
            taken.add(move.run_id)
    return taken


def move_unconfirmed(connection: Connection, run: TakeOff, from_address: str, since_ms: int, check_ms: int) -> bool:
    """Give an unconfirmed run that certainly did not arrive another address; only if True may it be sent there."""
    moved = connection.execute(
        update(job_log)
        .where(
            job_log.c.id == run.run_id,
            job_log.c.phase == Phase.UNCONFIRMED,
            job_log.c.executor_address == from_address,
        )
        .values(
            executor_address=run.address,
            instance_id=run.instance_id,
            unheard_ms=since_ms,
            check_ms=check_ms,
            idle_answers=0,
        )
    )
    return moved.rowcount == 1


def note_heard(connection: Connection, run_id: RunId, unheard_ms: int, idle_answers: int) -> None:
    """An executor answered about an unconfirmed run's job: busy starts the count of idle answers anew."""
    connection.execute(
        update(job_log)
        .where(job_log.c.id == run_id, job_log.c.phase == Phase.UNCONFIRMED)
        .values(unheard_ms=unheard_ms, idle_answers=idle_answers)
    )
