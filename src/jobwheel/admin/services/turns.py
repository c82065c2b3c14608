"""Work that any node may do, and one does at a time."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.turns import end_turn, take_turn

_TURN_MS = 30_000


class Turn:
    """One kind of such work: whoever has begun it keeps it, until it ends it or is silent for half a minute.

    It spares work; what must not happen twice is guarded by itself.
    """

    def __init__(self, name: str, database: Database, node_id: Callable[[], NodeId]) -> None:
        self._name = name
        self._database = database
        self._node_id = node_id

    async def keep(self) -> bool:
        """Take the turn, or keep it; False while it is another node's."""
        now_ms = self._database.now_ms()
        return await self._database.write(take_turn, self._name, self._node_id(), now_ms, _TURN_MS)

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[bool]:
        """Have the turn inside, if it is True, and leave it to others at the end."""
        mine = await self.keep()
        try:
            yield mine
        finally:
            if mine:
                await self._database.write(end_turn, self._name, self._node_id())
