"""Sees to it that the database knows what is in its tables before it plans queries of them."""

from collections.abc import Sequence
from typing import Final

from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import metadata
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_WORTH_IT_BYTES: Final = 1 << 20
"""Whatever the plan, a smaller table is read in no time."""


class PlannerStatistics:
    """Has statistics taken of tables of which there are none.

    So it is when rows were loaded in bulk, from a backup or by hand, after an upgrade of the server (which keeps none)
    and after one of ours (new columns have none), until the server does it by itself: minutes later, or never. The run
    list takes seconds meanwhile, instead of milliseconds. Statistics that are there are kept up by the server.

    A table is seen to once in a process: where its user may not do it, the log says so, and no more often than that.
    """

    def __init__(self, database: Database, clock: Clock, turn: Turn, least_bytes: int = _WORTH_IT_BYTES) -> None:
        self._database = database
        self._clock = clock
        self._turn = turn
        self._least_bytes = least_bytes
        self._seen_to: set[str] = set()

    async def run_once(self) -> list[str]:
        """Take what is missing, if no other node does; says of which tables."""
        if not await self._missing():
            return []
        async with self._turn.taken() as mine:
            # Somebody else may just have done it.
            missing = await self._missing() if mine else ()
            return [table for table in missing if await self._take(table)]

    async def _take(self, table: str) -> bool:
        began_s = self._clock.monotonic()
        await self._database.write_patiently(_take, table)
        self._seen_to.add(table)
        # The server does not refuse it to a user who does not own the table: it does nothing.
        if await self._database.read(_find, {table}, self._least_bytes):
            log.warning("statistics.missing", table=table, what_to_do="run ANALYZE as the user who owns the table")
            return False
        log.info("statistics.taken", table=table, seconds=round(self._clock.monotonic() - began_s, 1))
        return True

    async def _missing(self) -> Sequence[str]:
        tables = metadata.tables.keys() - self._seen_to
        return await self._database.read(_find, tables, self._least_bytes)


def _find(connection: Connection, tables: set[str], least_bytes: int) -> Sequence[str]:
    return statements(connection).tables_without_statistics(connection, tables, least_bytes)


def _take(connection: Connection, table: str) -> None:
    statements(connection).take_statistics(connection, table)
