"""First upgrades that are broken off in the middle, on each kind of database; the next start makes the schema."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, inspect, text
from sqlalchemy.util import await_only

from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.errors import SchemaVersionError
from jobwheel.admin.store.tables import VERSION_TABLE, job_info, metadata
from jobwheel.kernel.clock import SystemClock
from tests.support.run_servers import Servers
from tests.support.store import JOB_COLUMNS, KINDS, sqlite_url

WHOLE = {*metadata.tables, VERSION_TABLE}
_KILLED = """
import asyncio, os, signal, sys
from tests.migration.test_broken_off import broken_at, open_started

async def main() -> None:
    database = await open_started(sys.argv[1])
    await database.write_patiently(broken_at(int(sys.argv[2]), lambda: os.kill(os.getpid(), signal.SIGKILL)))

asyncio.run(main())
"""


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
    else:
        yield servers.make_database(request.param, "jobwheel_broken")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    opened = await open_started(url)
    yield opened
    await opened.stop()


async def open_started(url: str) -> Database:
    opened = open_database(url, SystemClock())
    await opened.start()
    return opened


def broken_at(
    most: int, end: Callable[[], object], upgrade: Callable[[Connection, str], None] = schema.prepare
) -> Callable[[Connection], None]:
    """An upgrade, the first unless another is given, ended in its own way before its change number `most` + 1."""

    def work(connection: Connection) -> None:
        changes: list[str] = []

        def count(_: object, __: object, statement: str, *___: Any) -> None:
            if statement.lstrip().startswith(("CREATE", "INSERT", "DROP", "ALTER")):
                changes.append(statement)
                if len(changes) > most:
                    end()

        event.listen(connection, "before_cursor_execute", count)
        try:
            upgrade(connection, "here")
        finally:
            event.remove(connection, "before_cursor_execute", count)

    return work


def fail() -> None:
    raise LookupError("broken off")


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names())


@pytest.mark.parametrize("most", [0, 1, 2, 3, 9, 30, 45])
async def test_the_next_start_makes_what_a_broken_off_one_began(database: Database, most: int) -> None:
    with pytest.raises(LookupError):
        await database.write_patiently(broken_at(most, fail))
    await database.write_patiently(schema.prepare, "here")
    assert await database.read(tables) == WHOLE
    assert await database.read(schema.current_version) == schema.newest_version()


@pytest.mark.parametrize("most", [0, 1, 3, *range(5, 18, 2)])
async def test_a_later_step_that_is_broken_off_is_brought_to_its_end_with_the_data(
    database: Database, most: int
) -> None:
    await database.write_patiently(schema.upgrade, "here", "0001")
    await database.write(lambda c: c.execute(job_info.insert().values(**JOB_COLUMNS)))
    with pytest.raises(LookupError):
        await database.write_patiently(broken_at(most, fail, schema.upgrade))
    await database.write_patiently(schema.upgrade, "here")
    assert await database.read(schema.current_version) == schema.newest_version()
    assert len(await database.read(lambda c: c.execute(job_info.select()).all())) == 1


@pytest.mark.parametrize("most", [2, 20])
@pytest.mark.timeout(30)
async def test_a_process_that_is_killed_in_the_middle_leaves_nothing_that_the_next_one_refuses(
    database: Database, url: str, most: int
) -> None:
    await database.stop()
    command = [sys.executable, "-c", _KILLED, url, str(most)]
    killed = subprocess.run(command, check=False, capture_output=True, cwd=Path(__file__).parents[2])  # noqa: ASYNC221 - nothing else goes on here
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    await database.start()
    await database.write_patiently(schema.upgrade, "here")
    assert await database.read(tables) == WHOLE


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_half_made_tables_with_rows_are_somebodys_and_stay(database: Database) -> None:
    with pytest.raises(LookupError):
        await database.write_patiently(broken_at(9, fail))
    await database.write(
        lambda c: c.execute(text("INSERT INTO xxl_job_group (app_name, title) VALUES ('orders', 'Orders')"))
    )
    before = await database.read(tables)
    with pytest.raises(SchemaVersionError, match="half made, but xxl_job_group holds rows"):
        await database.write_patiently(schema.prepare, "here")
    assert await database.read(tables) == before


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_an_upgrade_that_had_come_to_its_end_needs_no_other(database: Database) -> None:
    await database.write_patiently(schema.prepare, "here")
    await database.write(lambda c: c.execute(text(f"CREATE TABLE {schema.UNFINISHED_TABLE} (since TIMESTAMP)")))
    await database.write_patiently(schema.prepare, "here")
    await database.write_patiently(schema.upgrade, "here")
    assert await database.read(tables) == WHOLE


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_a_first_upgrade_whose_last_step_alone_was_broken_off_keeps_no_later_one_from_working(
    database: Database,
) -> None:
    """The mark's removal commits the new version before it waits for whoever looks at the mark."""

    def ended(connection: Connection, _: object, statement: str, *__: Any) -> None:
        if statement.startswith("DROP TABLE"):
            connection.exec_driver_sql("COMMIT")
            raise LookupError(statement)

    def work(connection: Connection) -> None:
        event.listen(connection, "before_cursor_execute", ended)
        schema.upgrade(connection, "here", "0006")

    with pytest.raises(LookupError, match=schema.UNFINISHED_TABLE):
        await database.write_patiently(work)
    assert await database.read(schema.current_version) == "0006"
    await database.write(lambda c: c.execute(job_info.insert().values(**JOB_COLUMNS)))
    await database.write_patiently(schema.upgrade, "here")
    assert await database.read(tables) == WHOLE
    assert len(await database.read(lambda c: c.execute(job_info.select()).all())) == 1


@pytest.mark.parametrize("url", ["mariadb"], indirect=True)
async def test_who_sees_a_first_upgrade_does_not_keep_it_from_its_end(database: Database, url: str) -> None:
    """A second admin that starts meanwhile waits for the first one, which must not wait for it."""
    other = await open_started(url)
    with pytest.raises(LookupError):
        await database.write_patiently(broken_at(9, fail))

    async def removed() -> None:
        await other.write_patiently(remove)

    def remove(connection: Connection) -> None:
        connection.exec_driver_sql("SET SESSION lock_wait_timeout = 1")
        connection.exec_driver_sql(f"DROP TABLE {schema.UNFINISHED_TABLE}")

    def look(connection: Connection) -> None:
        assert schema._is_unfinished(connection)
        assert schema._began_from_nothing(connection)
        await_only(removed())

    try:
        await database.write_patiently(look)
    finally:
        await other.stop()


async def test_a_schema_that_is_not_whole_is_refused_with_what_is_missing(database: Database) -> None:
    await database.write_patiently(schema.prepare, "here")
    await database.write(lambda c: c.execute(text("DROP TABLE jobwheel_event")))
    with pytest.raises(SchemaVersionError, match=r"not whole \(.*jobwheel_event.*\): restore it from a backup"):
        await database.write_patiently(schema.prepare, "here")
