"""This process as a node of the cluster: its id, its heartbeat, what it takes over from dead ones."""

import asyncio
import os
import socket
from typing import Final

from jobwheel import __version__
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.engine.rules import FIRST_QUESTION_MS, RESEND_AFTER_MS
from jobwheel.admin.store import Connection, nodes, registry, runs
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.nodes import Adopted, FirstLooks, Heritage, NodeFacts
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import Service

log = get_logger(__name__)

HEARTBEAT_S: Final = 5.0
DEAD_AFTER_S: Final = 15.0
"""A node is dead after so long without a heartbeat, by the database's clock."""

FRESH_FOR_S: Final = 10.0
"""A node sends only while its last heartbeat that succeeded was begun less than this ago, by the boot-time clock."""

_MOST_DIFFERENCE_S = 1.0
_LEAVES_WITHIN_S: Final = 3.0
_LOOKS: Final = FirstLooks(FIRST_QUESTION_MS, RESEND_AFTER_MS[0])
_RETRY = Backoff(first_s=0.5, most_s=2.0)


class Node(Service):
    """Registers at the start; beats; buries nodes that do not; hands over what is pending at the stop.

    A node that finds itself declared dead goes on under a new id, and has `forget` called: every run that it holds is
    another one's by then.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__("node", clock)
        self._database = database
        self._facts = NodeFacts(socket.gethostname(), os.getpid(), __version__)
        self._id: NodeId | None = None
        self._beats = PeriodicLoop("node.heartbeat", self.beat, HEARTBEAT_S, clock, _RETRY)
        self._beaten_s = 0.0
        self._unbroken_since_s = 0.0
        self._beating = asyncio.Lock()
        self.forget = _forget_nothing

    @property
    def id(self) -> NodeId:
        """The id of this node: new at every start, and after it was declared dead."""
        assert self._id is not None, "the node is not started"
        return self._id

    @property
    def is_fresh(self) -> bool:
        """Whether nobody can have declared this node dead: if not, it may have been frozen, and its runs adopted."""
        return self.clock.boot_time() - self._beaten_s < FRESH_FOR_S

    @property
    def unbroken_s(self) -> float:
        """For how long this node has been beating without a break; 0 if it may have been frozen just now.

        While nobody could beat, executors could not either: only who was there long enough may judge by silence.
        """
        return self.clock.boot_time() - self._unbroken_since_s if self.is_fresh else 0.0

    @property
    def clock_difference_s(self) -> float:
        """This host's clock minus the database's."""
        return (self.clock.now() - self._database.now_ms()) / 1000

    @property
    def clock_is_off(self) -> bool:
        """Whether the two differ by so much that this node must not plan (`behaviour.md`, Clocks).

        Nor may it take over what others planned, which it would send too early or too late. Nodes of a cluster must
        agree on the time. A node that is alone has no one to agree with: it follows its host's clock, and what a step
        passes over is a misfire.
        """
        return not self._database.is_for_one_node and abs(self.clock_difference_s) > _MOST_DIFFERENCE_S

    async def on_start(self) -> None:
        begun_s = self.clock.boot_time()
        adopted = await self._join()
        self._beaten_s = self._unbroken_since_s = begun_s
        log.info("node.started", node=self._id, adopted_pending=adopted.pending, unconfirmed=adopted.unconfirmed)
        await self._beats.start()

    async def _join(self) -> Adopted:
        """Take an id. A start that is broken off meanwhile knows the id nevertheless, if there is one: it is left."""
        join = self._database.write(_join, self._facts, self._database.now_ms(), self._database.is_for_one_node)
        joining = asyncio.ensure_future(join)
        try:
            self._id, adopted = await asyncio.shield(joining)
        except asyncio.CancelledError:
            await asyncio.wait({joining}, timeout=_LEAVES_WITHIN_S)
            if not joining.cancel() and joining.exception() is None:
                self._id, _ = joining.result()
            await asyncio.gather(joining, return_exceptions=True)
            raise
        return adopted

    async def on_stop(self) -> None:
        await self._beats.stop()
        if self._id is None:
            return
        try:
            async with asyncio.timeout(self._leaves_within_s()):
                handed_over = await self._database.write(_leave, self._id)
        except TimeoutError:
            log.warning("node.not_handed_over", node=self._id, reason="the database does not answer")
        else:
            log.info("node.stopped", node=self._id, handed_over=handed_over)

    def _leaves_within_s(self) -> float:
        """For how long the good-bye is of use: then others have buried this node. One that came just now holds little.

        For whoever waits for the end of a process whose database hangs.
        """
        if self._beaten_s == self._unbroken_since_s:
            return _LEAVES_WITHIN_S
        return max(_LEAVES_WITHIN_S, self._beaten_s + DEAD_AFTER_S - self.clock.boot_time())

    async def confirm(self) -> None:
        """Beat if this node may have been declared dead: what it wrote under an id that is dead would wait for an heir.

        To be called before runs are written, taken over, or sent.
        """
        if self.is_fresh:
            return
        async with self._beating:
            # Many may have waited for the one who beat.
            if not self.is_fresh:
                await self._beat()

    async def beat(self) -> None:
        """Say that this node lives, and take over the runs of those that do not say so any more."""
        # Whoever finds this node declared dead gives it one new id, not two.
        async with self._beating:
            await self._beat()

    async def _beat(self) -> None:
        begun_s = self.clock.boot_time()
        await self._database.measure_clock()
        lives = await self._database.write(nodes.beat, self.id, self._database.now_ms())
        if begun_s - self._beaten_s > DEAD_AFTER_S or not lives:
            self._unbroken_since_s = begun_s
        if not lives:
            await self._rejoin()
        self._beaten_s = begun_s
        # After an outage of the database everybody looks dead at first: nobody may be an heir before the others had
        # the time to beat again.
        is_heir = not self._database.is_for_one_node and not self.clock_is_off
        if is_heir and begun_s - self._unbroken_since_s >= DEAD_AFTER_S:
            await self._bury()

    async def _rejoin(self) -> None:
        declared_dead = self.id
        self._id = await self._database.write(nodes.register, self._facts, self._database.now_ms())
        self.forget()
        log.error("node.declared_dead", node=declared_dead, new_node=self._id)

    async def _bury(self) -> None:
        heritages: list[Heritage] = await self._database.write(
            nodes.adopt_dead, self.id, self._database.now_ms(), int(DEAD_AFTER_S * 1000), _LOOKS
        )
        for each in heritages:
            log.warning(
                "node.buried",
                dead=each.dead,
                adopted_pending=each.adopted.pending,
                unconfirmed=each.adopted.unconfirmed,
            )


def _forget_nothing() -> None:
    """Until somebody holds runs."""


def _join(
    connection: Connection,
    facts: NodeFacts,
    now_ms: int,
    is_alone: bool,  # noqa: FBT001 - passed through `write`
) -> tuple[NodeId, Adopted]:
    node_id = nodes.register(connection, facts, now_ms)
    nodes.look_at_all_accepted(connection, now_ms)
    if not is_alone:
        return node_id, Adopted(0, 0)
    registry.spare_addresses(connection, now_ms)
    return node_id, nodes.adopt_all(connection, node_id, now_ms, _LOOKS)


def _leave(connection: Connection, node_id: NodeId) -> int:
    handed_over = runs.release_pending(connection, node_id)
    nodes.unregister(connection, node_id)
    return handed_over
