"""The nodes of the cluster, and what becomes of the runs of those that died."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, case, delete, insert, select, update

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.store.limits import WAITING
from jobwheel.admin.store.tables import job_log, node


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


def adopt_all(connection: Connection, node_id: NodeId, now_ms: int, ask_others_after_ms: int) -> Adopted:
    """Take over every run that another node owns: only where the file lock proves that all others are dead (SQLite).

    Pending runs become this node's. Runs being sent may or may not have arrived: they become unconfirmed; those at
    executors of ours are looked at now, others after `ask_others_after_ms`. `now_ms` is by the database's clock.
    """
    not_mine = (job_log.c.owner != node_id) | job_log.c.owner.is_(None)
    adopted = _adopt(connection, not_mine, node_id, now_ms, ask_others_after_ms)
    # A look further away than any is set: the clock was set back while no node ran.
    connection.execute(
        update(job_log)
        .where(job_log.c.check_ms > now_ms + ask_others_after_ms, job_log.c.phase == Phase.UNCONFIRMED)
        .values(unheard_ms=now_ms, check_ms=now_ms)
    )
    connection.execute(delete(node).where(node.c.id != node_id))
    return adopted


@dataclass(frozen=True, slots=True)
class Heritage:
    """What became of a dead node's runs."""

    dead: NodeId
    adopted: Adopted


def adopt_dead(
    connection: Connection, node_id: NodeId, now_ms: int, dead_after_ms: int, ask_others_after_ms: int
) -> list[Heritage]:
    """Declare nodes dead whose last heartbeat is older than `dead_after_ms`, and take over their runs.

    Declaring and taking over are one transaction, guarded on the heartbeat that was read: a node that beats after all
    keeps its runs, and of two heirs one finds nothing. A node that is declared dead while it lives finds its row gone
    at its next heartbeat. `now_ms` is by the database's clock.
    """
    silent = (
        select(node.c.id, node.c.heartbeat_ms)
        .where(node.c.id != node_id, node.c.heartbeat_ms < now_ms - dead_after_ms)
        .order_by(node.c.id)
    )
    dead = [
        NodeId(row.id)
        for row in connection.execute(silent).all()
        if connection.execute(delete(node).where(node.c.id == row.id, node.c.heartbeat_ms == row.heartbeat_ms)).rowcount
        == 1
    ]
    dead += _owners_without_a_node(connection)
    return [
        Heritage(each, _adopt(connection, job_log.c.owner == each, node_id, now_ms, ask_others_after_ms))
        for each in dict.fromkeys(dead)
    ]


def _owners_without_a_node(connection: Connection) -> list[NodeId]:
    """A node that was frozen in the middle of a commit may still have written runs after it was declared dead."""
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


def _adopt(
    connection: Connection, whose: ColumnElement[bool], node_id: NodeId, now_ms: int, ask_others_after_ms: int
) -> Adopted:
    pending = connection.execute(update(job_log).where(job_log.c.phase == Phase.PENDING, whose).values(owner=node_id))
    sending = connection.execute(
        update(job_log)
        .where(job_log.c.phase == Phase.SENDING, whose)
        .values(
            phase=Phase.UNCONFIRMED,
            owner=None,
            unheard_ms=now_ms,
            check_ms=case((job_log.c.instance_id.is_(None), now_ms + ask_others_after_ms), else_=now_ms),
        )
    )
    return Adopted(pending.rowcount, sending.rowcount)


def live_nodes(connection: Connection) -> list[tuple[NodeId, str, int]]:
    """The nodes with host and last heartbeat (epoch milliseconds by the database's clock)."""
    rows = connection.execute(select(node.c.id, node.c.host, node.c.heartbeat_ms).order_by(node.c.id))
    return [(NodeId(row.id), row.host, row.heartbeat_ms) for row in rows]
