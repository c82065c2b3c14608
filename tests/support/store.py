"""A store with the schema and nothing else, and rows put into it in the states that tests need."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import BigInteger, Table, delete, insert, select, update

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import NewRun, PendingRun, TriggerType
from jobwheel.admin.domain.writes import Applied, RunWrite, TakeOff
from jobwheel.admin.store import Connection, nodes, run_log, runs, schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.nodes import FirstLooks, NodeFacts
from jobwheel.admin.store.sqlite_database import sqlite_path
from jobwheel.admin.store.tables import job_group, job_info, job_log, metadata
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from tests.support.servers import SERVER_KINDS
from tests.support.sqlite_file import make_sqlite_file

KINDS = ("sqlite", *SERVER_KINDS)
"""The kinds of database that the contract tests run on."""

ZONE = "Asia/Shanghai"
NOW_MS = 1_795_746_600_250
"""2026-11-27T02:30:00.250Z, which is 10:30:00 in the installation's zone."""

_HIGH_ID: Final = 2**31 + 1000

ADDRESS = "http://10.0.0.7:9999/"
FIRST_LOOKS: Final = FirstLooks(60_000, 10_000)

INSTANCE = "7f0c6a52-0000-4000-8000-000000000001"


@dataclass(frozen=True, slots=True)
class Store:
    """A started database, and short ways to its functions."""

    database: Database
    zone: InstallationZone
    clock: Clock

    async def node(self) -> NodeId:
        """A node that joined just now."""
        return await self.database.write(nodes.register, NodeFacts("host-1", 7, "1.0.0"), NOW_MS)

    async def group(self, app_name: str = "orders", **columns: object) -> GroupId:
        values = {"app_name": app_name, "title": "Orders", **columns}
        return GroupId(await self.database.write(_insert, job_group, values))

    async def job(self, **columns: object) -> JobId:
        """A running job of every second that is due at `NOW_MS` cut to whole seconds."""
        return JobId(await self.database.write(_insert, job_info, {**JOB_COLUMNS, **columns}))

    async def job_row(self, job_id: JobId) -> Mapping[str, Any]:
        return await self.database.read(_row, job_info, job_id)

    async def change_job(self, job_id: JobId, **columns: object) -> None:
        await self.database.write(lambda c: c.execute(update(job_info).where(job_info.c.id == job_id).values(columns)))

    async def pending(self, owner: NodeId | None, *planned_ms: int, job_id: int = 1, **fields: Any) -> list[PendingRun]:
        """Pending runs planned at these instants (one at `NOW_MS` without any)."""
        new = [new_run(owner, each, job_id=job_id, **fields) for each in planned_ms or (NOW_MS,)]
        return await self.database.write(runs.insert_runs, self.zone, new)

    async def sending(self, owner: NodeId, job_id: int = 1, instance_id: str | None = None) -> RunId:
        """A run that took off to `ADDRESS`."""
        run = (await self.pending(owner, job_id=job_id))[0]
        matched = await self.database.write(run_log.take_off, owner, NOW_MS, [take_off(run.id, instance_id)])
        assert matched == {run.id}
        return run.id

    async def apply(self, owner: NodeId, *writes: RunWrite) -> Applied:
        return await self.database.write(run_log.apply, self.zone, owner, writes)

    async def run_row(self, run_id: RunId) -> Mapping[str, Any]:
        return await self.database.read(_row, job_log, run_id)

    async def change_run(self, run_id: RunId, **columns: object) -> None:
        await self.database.write(lambda c: c.execute(update(job_log).where(job_log.c.id == run_id).values(columns)))


JOB_COLUMNS: Mapping[str, object] = {
    "job_group": 1,
    "job_desc": "settle accounts",
    "schedule_type": "CRON",
    "schedule_conf": "* * * * * ?",
    "misfire_strategy": "DO_NOTHING",
    "executor_route_strategy": "FIRST",
    "executor_handler": "settle",
    "executor_param": "day=1",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "glue_type": "BEAN",
    "trigger_status": 1,
    "trigger_next_time": NOW_MS - NOW_MS % 1000,
}


@contextlib.asynccontextmanager
async def open_store(kind: str, path: Path, clock: Clock, *, fresh: bool = False) -> AsyncIterator[Store]:
    """An SQLite store in a folder, empty but for its schema."""
    assert kind == "sqlite"
    async with open_store_at(sqlite_url(path), clock, fresh=fresh) as store:
        yield store


_PREPARED: Final[set[str]] = set()
"""Servers' databases that have the schema: to look at it again takes longer than to empty the tables."""


@contextlib.asynccontextmanager
async def open_store_at(url: str, clock: Clock, *, fresh: bool = False) -> AsyncIterator[Store]:
    """The store at a URL, emptied but for its schema. `fresh`: it makes what is missing itself, as an admin does."""
    database = open_database(url, clock)
    has_schema = url in _PREPARED
    if database.kind == "sqlite" and not fresh:
        make_sqlite_file(sqlite_path(url).parent)
        has_schema = True
    await database.start()
    try:
        if fresh or not has_schema:
            await database.write(schema.prepare, "test")
            if database.kind != "sqlite":
                await database.write(begin_ids_high)
        if database.kind != "sqlite":
            _PREPARED.add(url)
        await database.write(empty)
        yield Store(database, InstallationZone(ZONE), clock)
        assert getattr(database, "checked_out", 0) == 0
    finally:
        await database.stop()


def begin_ids_high(connection: Connection, tables: Iterable[Table] = metadata.sorted_tables) -> None:
    """Runs, events and all that has long ids get some beyond 32 bits, as in an installation of some age."""
    for table in tables:
        column = table.autoincrement_column
        if column is not None and isinstance(column.type, BigInteger):
            words = (
                f"ALTER SEQUENCE {table.name}_{column.name}_seq RESTART WITH {_HIGH_ID}"
                if connection.dialect.name == "postgresql"
                else f"ALTER TABLE {table.name} AUTO_INCREMENT = {_HIGH_ID}"
            )
            connection.exec_driver_sql(words)


def sqlite_url(folder: Path) -> str:
    return f"sqlite:///{quote(str(folder / 'jobwheel.db'))}"


def empty(connection: Connection) -> None:
    """Remove every row. Faster than a new database, and ids go on."""
    for table in metadata.sorted_tables:
        connection.execute(delete(table))


def new_run(
    owner: NodeId | None,
    planned_ms: int = NOW_MS,
    *,
    job_id: int = 1,
    group_id: int = 1,
    trigger_type: TriggerType = TriggerType.CRON,
    due_ms: int | None = None,
    parameter: str = "day=1",
    named_addresses: Sequence[str] = (),
) -> NewRun:
    return NewRun(
        job_id=JobId(job_id),
        group_id=GroupId(group_id),
        trigger_type=trigger_type,
        planned_ms=planned_ms,
        due_ms=planned_ms if due_ms is None else due_ms,
        triggered_ms=planned_ms - planned_ms % 1000,
        parameter=parameter,
        owner=owner,
        named_addresses=tuple(named_addresses),
    )


def take_off(run_id: RunId, instance_id: str | None = None, address: str = ADDRESS) -> TakeOff:
    return TakeOff(run_id, address, "settle", "FIRST", instance_id)


def _insert(connection: Connection, table: Any, values: Mapping[str, object]) -> int:
    key = connection.execute(insert(table).values(values)).inserted_primary_key
    assert key is not None
    return int(key[0])


def _row(connection: Connection, table: Any, row_id: int) -> Mapping[str, Any]:
    return dict(connection.execute(select(table).where(table.c.id == row_id)).one()._mapping)
