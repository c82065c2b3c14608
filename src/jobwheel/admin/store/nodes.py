"""The nodes of the cluster, and what becomes of the runs of those that died."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, case, delete, func, insert, select, update

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.policies import UncertainSend
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.store.alarm_sending import free_of
from jobwheel.admin.store.limits import WAITING
from jobwheel.admin.store.tables import job_info, job_log, node

_BATCH: Final = 1000

_MOST_AHEAD_MS: Final = 600_000
"""No accepted run is looked at later than so long from now."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node says of itself."""

    host: str
    process_id: int
    version: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """What a starting node took over from dead ones."""

    pending: int
    unconfirmed: int


def register(connection: Connection, facts: NodeFacts, now_ms: int) -> NodeId:
    """Give this process a node id that no other ever had. `now_ms` is by the database's clock."""
    added = connection.execute(
        insert(node).values(
            host=facts.host,
            process_id=facts.process_id,
            version=facts.version,
            started_ms=now_ms,
            heartbeat_ms=now_ms,
        )
    )
    key = added.inserted_primary_key
    assert key is not None, "an insert of one row has a key"
    return NodeId(key[0])


def beat(connection: Connection, node_id: NodeId, now_ms: int) -> bool:
    """Say that the node lives; False if it has been declared dead."""
    changed = connection.execute(update(node).where(node.c.id == node_id).values(heartbeat_ms=now_ms))
    return changed.rowcount == 1


def unregister(connection: Connection, node_id: NodeId) -> None:
    connection.execute(delete(node).where(node.c.id == node_id))


@dataclass(frozen=True, slots=True)
class FirstLooks:
    """How long after the adoption runs that may have arrived are looked at; those at executors of ours at once.

    Attributes:
        ask_ms: another make of executor is asked.
        send_again_ms: it is sent the run again, as the job says.
    """

    ask_ms: int
    send_again_ms: int


def adopt_all(connection: Connection, node_id: NodeId, now_ms: int, looks: FirstLooks) -> Adopted:
    """Take over every run that another node owns: only where the file lock proves that all others are dead (SQLite).

    Pending runs become this node's. Runs being sent may or may not have arrived: they become unconfirmed. `now_ms` is
    by the database's clock.
    """
    not_mine = (job_log.c.owner != node_id) | job_log.c.owner.is_(None)
    pending = _take(connection, (job_log.c.phase == Phase.PENDING) & not_mine, node_id)
    is_sending = (job_log.c.phase == Phase.SENDING) & not_mine
    pending += _take_unsent(connection, is_sending, node_id)
    sending = _doubt(connection, is_sending, now_ms, looks)
    # A look further away than any is set: the clock was set back while no node ran.
    for phase, most_ms in ((Phase.UNCONFIRMED, looks.ask_ms), (Phase.ACCEPTED, _MOST_AHEAD_MS)):
        connection.execute(
            update(job_log)
            .where(job_log.c.check_ms > now_ms + most_ms, func.coalesce(job_log.c.phase, "") == phase)
            .values(unheard_ms=now_ms, check_ms=now_ms)
        )
    connection.execute(delete(node).where(node.c.id != node_id))
    return Adopted(pending, sending)


def look_at_all_accepted(connection: Connection, now_ms: int) -> int:
    """Have accepted runs looked at from now on that nobody was to look at: an earlier version wrote no time for it.

    Those that another transaction holds are just then ended or looked after. `now_ms` is by the database's clock.
    """
    forgotten = (
        select(job_log.c.id)
        .where(job_log.c.phase == Phase.ACCEPTED, job_log.c.check_ms.is_(None))
        .order_by(job_log.c.id)
        .with_for_update(skip_locked=True)
    )
    run_ids = list(connection.execute(forgotten).scalars())
    heard_ms = func.coalesce(job_log.c.unheard_ms, now_ms)
    for first in range(0, len(run_ids), _BATCH):
        these = update(job_log).where(job_log.c.id.in_(run_ids[first : first + _BATCH]))
        connection.execute(these.values(check_ms=now_ms, unheard_ms=heard_ms))
    return len(run_ids)


@dataclass(frozen=True, slots=True)
class Heritage:
    """What became of a dead node's runs."""

    dead: NodeId
    adopted: Adopted


def adopt_dead(
    connection: Connection, node_id: NodeId, now_ms: int, dead_after_ms: int, looks: FirstLooks
) -> list[Heritage]:
    """Declare nodes dead whose last heartbeat is older than `dead_after_ms`, and take over their runs.

    Declaring and taking over are one transaction, guarded on the heartbeat that was read: a node that beats after all
    keeps its runs, and of two heirs one finds nothing. A node that is declared dead while it lives finds its row gone
    at its next heartbeat. `now_ms` is by the database's clock.

    Nothing is waited for: a node that was frozen, or whose machine died, in the middle of a transaction may hold rows
    for very long, and an heir that waits does not beat. Such rows are taken over later, when they are free.
    """
    silent = (
        select(node.c.id, node.c.heartbeat_ms)
        .where(node.c.id != node_id, node.c.heartbeat_ms < now_ms - dead_after_ms)
        .order_by(node.c.id)
        .with_for_update(skip_locked=True)
    )
    buried = [
        NodeId(row.id)
        for row in connection.execute(silent).all()
        if connection.execute(delete(node).where(node.c.id == row.id, node.c.heartbeat_ms == row.heartbeat_ms)).rowcount
        == 1
    ]
    if buried:
        free_of(connection, buried, now_ms)
    dead = [*buried, *_owners_without_a_node(connection)]
    heritages = [Heritage(each, _adopt_free(connection, each, node_id, now_ms, looks)) for each in dict.fromkeys(dead)]
    return [each for each in heritages if each.dead in buried or each.adopted != Adopted(0, 0)]


def _adopt_free(connection: Connection, dead: NodeId, node_id: NodeId, now_ms: int, looks: FirstLooks) -> Adopted:
    """Take over a dead node's runs, without those that its last transaction still holds."""
    free = (
        select(job_log.c.id, job_log.c.phase, job_log.c.executor_address)
        .where(job_log.c.phase.in_([Phase.PENDING, Phase.SENDING]), job_log.c.owner == dead)
        .order_by(job_log.c.id)
        .with_for_update(skip_locked=True)
    )
    # By their ids alone: a search by phase or owner would meet the rows that are held again, and wait.
    rows = connection.execute(free).all()
    pending = [row.id for row in rows if row.phase == Phase.PENDING]
    unsent = [row.id for row in rows if row.phase == Phase.SENDING and not row.executor_address]
    sending = [row.id for row in rows if row.phase == Phase.SENDING and row.executor_address]
    for first in range(0, len(unsent), _BATCH):
        _take_unsent(connection, job_log.c.id.in_(unsent[first : first + _BATCH]), node_id)
    for first in range(0, len(pending), _BATCH):
        _take(connection, job_log.c.id.in_(pending[first : first + _BATCH]), node_id)
    for first in range(0, len(sending), _BATCH):
        _doubt(connection, job_log.c.id.in_(sending[first : first + _BATCH]), now_ms, looks)
    return Adopted(len(pending) + len(unsent), len(sending))


def _owners_without_a_node(connection: Connection) -> list[NodeId]:
    """A node that was frozen in a transaction may have written runs, or let go of some, after it was declared dead."""
    owners = (
        select(job_log.c.owner)
        .where(
            job_log.c.phase.in_([Phase.PENDING, Phase.SENDING]),
            job_log.c.owner.is_not(None),
            job_log.c.owner != WAITING,
            job_log.c.owner.not_in(select(node.c.id)),
        )
        .distinct()
    )
    return [NodeId(owner) for owner in connection.execute(owners).scalars()]


def _take(connection: Connection, which: ColumnElement[bool], node_id: NodeId) -> int:
    """Pending runs become this node's."""
    return connection.execute(update(job_log).where(which).values(owner=node_id)).rowcount


def _take_unsent(connection: Connection, which: ColumnElement[bool], node_id: NodeId) -> int:
    """Runs that took off without an address, to fail, were sent nowhere: they are this node's, and have their turn."""
    nowhere = update(job_log).where(which, func.coalesce(job_log.c.executor_address, "") == "")
    # One that a kill was asked for meanwhile never takes off: the recovery ends it.
    values = {"phase": Phase.PENDING, "owner": node_id, "sent_ms": None, "check_ms": job_log.c.kill_ms}
    return connection.execute(nowhere.values(values)).rowcount


def _doubt(connection: Connection, which: ColumnElement[bool], now_ms: int, looks: FirstLooks) -> int:
    """Runs that were being sent become unconfirmed, and nobody's."""
    # Not EXISTS: for that PostgreSQL would read all jobs.
    said = select(job_info.c.uncertain_send).where(job_info.c.id == job_log.c.job_id).correlate(job_log)
    first_ms = case(
        (job_log.c.instance_id.is_not(None), now_ms),
        (said.scalar_subquery() == UncertainSend.SEND_AGAIN, now_ms + looks.send_again_ms),
        else_=now_ms + looks.ask_ms,
    )
    check_ms = func.coalesce(job_log.c.kill_ms, first_ms)
    doubted = update(job_log).where(which)
    return connection.execute(
        doubted.values(phase=Phase.UNCONFIRMED, owner=None, unheard_ms=now_ms, check_ms=check_ms)
    ).rowcount


def live_nodes(connection: Connection) -> list[tuple[NodeId, str, int]]:
    """The nodes with host and last heartbeat (epoch milliseconds by the database's clock)."""
    rows = connection.execute(select(node.c.id, node.c.host, node.c.heartbeat_ms).order_by(node.c.id))
    return [(NodeId(row.id), row.host, row.heartbeat_ms) for row in rows]
