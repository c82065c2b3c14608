"""This process as a node of the cluster: its id, its heartbeat, what it takes over at the start."""

import os
import socket

from jobwheel import __version__
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.engine.rules import FIRST_QUESTION_MS
from jobwheel.admin.store import Connection, nodes, registry, runs
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.nodes import Adopted, NodeFacts
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import Service

log = get_logger(__name__)

HEARTBEAT_S = 5.0


class Node(Service):
    """Registers at the start and adopts what dead nodes left; beats; hands over what is pending at the stop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__("node", clock)
        self._database = database
        self._id: NodeId | None = None
        self._beats = PeriodicLoop("node.heartbeat", self._beat, HEARTBEAT_S, clock)

    @property
    def id(self) -> NodeId:
        """The id of this node: new at every start."""
        assert self._id is not None, "the node is not started"
        return self._id

    async def on_start(self) -> None:
        facts = NodeFacts(socket.gethostname(), os.getpid(), __version__)
        self._id, adopted = await self._database.write(_join, facts, self._database.now_ms())
        log.info("node.started", node=self._id, adopted_pending=adopted.pending, unconfirmed=adopted.unconfirmed)
        await self._beats.start()

    async def on_stop(self) -> None:
        await self._beats.stop()
        if self._id is not None:
            handed_over = await self._database.write(_leave, self._id)
            log.info("node.stopped", node=self._id, handed_over=handed_over)

    async def _beat(self) -> None:
        await self._database.measure_clock()
        if not await self._database.write(nodes.beat, self.id, self._database.now_ms()):
            log.error("node.row_gone", node=self.id)


def _join(connection: Connection, facts: NodeFacts, now_ms: int) -> tuple[NodeId, Adopted]:
    node_id = nodes.register(connection, facts, now_ms)
    registry.spare_addresses(connection, now_ms)
    return node_id, nodes.adopt_all(connection, node_id, now_ms, FIRST_QUESTION_MS)


def _leave(connection: Connection, node_id: NodeId) -> int:
    handed_over = runs.release_pending(connection, node_id)
    nodes.unregister(connection, node_id)
    return handed_over
