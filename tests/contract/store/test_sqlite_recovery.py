"""An SQLite database whose connection has failed: the next transaction opens the file anew."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError, ProgrammingError

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store import Connection, sqlite_connections
from jobwheel.admin.store.database import is_outage
from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.admin.store.sqlite_commits import dbapi_connection
from jobwheel.admin.store.sqlite_database import SqliteDatabase
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.sqlite_file import DURABLE
from tests.support.store import NOW_MS, Store, open_store

OPEN_FILES = Path("/proc/self/fd")


@pytest.fixture
async def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    # As an admin writes: a sync that fails keeps what was not written from being copied into the file.
    monkeypatch.setattr(sqlite_connections, "_WRITER_PRAGMAS", DURABLE)
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as opened:
        yield opened


def write(store: Store) -> Callable[[Connection], object]:
    """Something that changes a row."""
    return lambda connection: connection.exec_driver_sql("INSERT INTO xxl_job_lock (lock_name) VALUES (hex(random()))")


async def locks(store: Store) -> int:
    count = "SELECT count(*) FROM xxl_job_lock WHERE lock_name <> 'schedule_lock'"
    return await store.database.read(lambda c: c.exec_driver_sql(count).scalar_one())


def spoil(store: Store, what: str, device: str) -> int:
    """Have all files that are open under such a name be the device from now on; how many there are."""
    assert isinstance(store.database, SqliteDatabase)
    spoilt = 0
    with Path(device).open("r+b", buffering=0) as other:
        for entry in OPEN_FILES.iterdir():
            try:
                name = str(entry.readlink())
            except FileNotFoundError:
                continue
            if name == f"{store.database.path}{what}":
                os.dup2(other.fileno(), int(entry.name))
                spoilt += 1
    return spoilt


@pytest.mark.skipif(not OPEN_FILES.exists(), reason="needs /proc")
async def test_after_a_disk_that_fails_for_a_while(store: Store) -> None:
    await store.database.write(write(store))
    # Every write to the log fails on the connections that are open, and on no new one.
    assert await asyncio.to_thread(spoil, store, "-wal", "/dev/full") > 0
    with pytest.raises(DatabaseUnusableError) as caught:
        await store.database.write(write(store))
    assert is_outage(caught.value)
    for _ in range(3):
        await store.database.write(write(store))
    # The readers' files are spoilt as well: each fails once.
    for _ in range(5):
        try:
            found = await locks(store)
        except DatabaseUnusableError:
            continue
    assert found == 4


async def test_after_a_connection_that_was_closed(store: Store) -> None:
    def close(connection: Connection) -> None:
        dbapi_connection(connection).close()

    for run in (store.database.write, store.database.read):
        with pytest.raises(ProgrammingError, match="closed"):
            await run(close)
    for _ in range(3):
        await store.database.write(write(store))
        await locks(store)
    assert await locks(store) == 3


async def test_after_an_error_of_one_that_shared_its_commit(store: Store) -> None:
    def break_off(connection: Connection) -> None:
        made.append(dbapi_connection(connection))
        raise sqlite3.DatabaseError("database disk image is malformed")

    made: list[sqlite3.Connection] = []
    outcomes = await asyncio.gather(
        *(store.database.write(each) for each in (write(store), break_off, write(store))), return_exceptions=True
    )
    assert isinstance(outcomes[1], DatabaseUnusableError)
    await store.database.write(lambda c: made.append(dbapi_connection(c)))
    assert made[0] is not made[1]
    assert await locks(store) == 2


async def test_a_bad_row_or_a_mistake_costs_no_connection(store: Store) -> None:
    made: list[sqlite3.Connection] = []

    def refuse(connection: Connection) -> None:
        made.append(dbapi_connection(connection))
        connection.exec_driver_sql("INSERT INTO xxl_job_lock (lock_name) VALUES ('schedule_lock'), ('schedule_lock')")

    def fail(connection: Connection) -> NodeId:
        made.append(dbapi_connection(connection))
        raise LookupError

    for work, error in ((refuse, IntegrityError), (fail, LookupError), (refuse, IntegrityError)):
        with pytest.raises(error):
            await store.database.write(work)
    assert made[0] is made[1] is made[2]
