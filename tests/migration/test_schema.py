"""The schema's steps, up and down, and what is refused, on each kind of database."""

from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from benchmarks.rows_fill import take_indexes
from jobwheel.admin.domain.ids import GroupId, NodeId
from jobwheel.admin.domain.report import RunCounts, Slice
from jobwheel.admin.store import reports, runs, schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.errors import SchemaVersionError
from jobwheel.admin.store.tables import VERSION_TABLE, job_info, job_log, metadata
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from tests.support.run_servers import Servers
from tests.support.store import JOB_COLUMNS, KINDS, ZONE, new_run, sqlite_url

TRANSACTIONAL = [kind for kind in KINDS if kind != "mariadb"]
"""Where a step that fails leaves nothing behind: MySQL and MariaDB commit each change of the schema at once."""

_MADE = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'",
    "postgresql": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' "
    "AND tablename NOT LIKE '%schema_version%'",
}


@pytest.fixture(params=KINDS)
def url(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> Iterator[str]:
    """An empty database."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
    else:
        yield servers.make_database(request.param, "jobwheel_steps")


@pytest.fixture
async def database(url: str) -> AsyncIterator[Database]:
    opened = open_database(url, SystemClock())
    await opened.start()
    yield opened
    await opened.stop()


def test_the_files_are_named_by_their_versions_in_the_order_of_the_steps() -> None:
    steps = ScriptDirectory(str(Path(schema.__file__).parent / "migrations")).walk_revisions()
    assert schema.versions() == [step.revision for step in reversed(list(steps))]


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names()) - {VERSION_TABLE}


async def test_an_empty_database_gets_the_whole_schema(database: Database) -> None:
    await database.write(schema.prepare, "here")
    assert await database.read(tables) == set(metadata.tables)
    assert await database.read(schema.current_version) == schema.newest_version()


async def test_the_steps_make_what_the_tables_say(database: Database) -> None:
    def differences(connection: Connection) -> list[object]:
        options = {"version_table": VERSION_TABLE, "compare_server_default": True, "compare_type": True}
        kind = connection.dialect.name

        def belongs_here(item: Any, *_: object) -> bool:
            condition = getattr(item, "_ddl_if", None)
            return condition is None or kind in condition.dialect

        return list(
            compare_metadata(
                MigrationContext.configure(connection, opts={**options, "include_object": belongs_here}), metadata
            )
        )

    await database.write(schema.prepare, "here")
    assert await database.read(differences) == []


def made(connection: Connection) -> dict[str, str]:
    """How the database says that its indexes are made; MariaDB with their tables."""
    kind = connection.dialect.name
    if kind == "mysql":
        created = [connection.execute(text(f"SHOW CREATE TABLE {name}")).one() for name in metadata.tables]
        # What belongs to a table in which order: the steps make their indexes one after the other.
        return {row[0]: "\n".join(sorted(line.rstrip(",") for line in row[1].splitlines())) for row in created}
    return {row[0]: row[1] for row in connection.execute(text(_MADE[kind]))}


async def test_everything_is_made_to_the_letter(database: Database) -> None:
    """Conditions of indexes, collations and engines, which the comparison above does not look at."""

    def make_directly(connection: Connection) -> None:
        metadata.drop_all(connection)
        metadata.create_all(connection)

    await database.write(schema.prepare, "here")
    stepped = await database.read(made)
    await database.write(make_directly)
    direct = await database.read(made)
    assert stepped == direct
    words = "COLLATE=utf8mb4_bin" if database.kind == "mariadb" else " WHERE "
    assert sum(words in sql for sql in stepped.values()) >= 5


async def test_the_log_that_is_measured_is_the_log_of_the_schema(database: Database) -> None:
    await database.write(schema.prepare, "here")
    before = await database.read(made)
    making = await database.write(take_indexes)
    assert await database.read(made) != before
    for make in making:
        await database.write(make)
    assert await database.read(made) == before


# Each change of the schema is a commit of its own on MariaDB.
@pytest.mark.timeout(40)
async def test_down_and_up_again_with_data_in_the_tables(database: Database) -> None:
    def fill(connection: Connection) -> None:
        connection.execute(job_info.insert().values(**JOB_COLUMNS))
        runs.insert_runs(connection, InstallationZone(ZONE), [new_run(NodeId(1)) for _ in range(10)])

    await database.write(schema.prepare, "here")
    await database.write(fill)
    await database.write(schema.downgrade, "base")
    assert await database.read(tables) == set()
    assert await database.read(schema.current_version) is None
    await database.write(schema.upgrade, "here")
    assert await database.read(tables) == set(metadata.tables)
    assert await database.read(lambda c: c.execute(job_log.select()).all()) == []


async def test_the_indexes_of_what_follows_a_run_step_down_and_up_with_data(database: Database) -> None:
    def indexes(connection: Connection) -> set[str | None]:
        tables = ("xxl_job_info", "xxl_job_log")
        return {each["name"] for table in tables for each in inspect(connection).get_indexes(table)}

    await database.write(schema.prepare, "here")
    await database.write(lambda c: c.execute(job_info.insert().values(**JOB_COLUMNS, child_jobid="7,8")))
    await database.write(runs.insert_runs, InstallationZone(ZONE), [new_run(NodeId(1))])
    whole = await database.read(indexes)
    await database.write(schema.downgrade, "0002")
    before = await database.read(indexes)
    await database.write(schema.downgrade, "0001")
    gone = {"jobwheel_info_children", "jobwheel_log_first", "jobwheel_log_parent", "jobwheel_log_broadcast"}
    assert await database.read(indexes) == before - gone
    assert gone <= before
    await database.write(schema.upgrade, "here")
    assert await database.read(indexes) == whole
    assert len(await database.read(lambda c: c.execute(job_log.select()).all())) == 1


async def test_counted_slices_are_kept_down_and_up(database: Database) -> None:
    day = datetime(2026, 11, 27, 9, 0)  # noqa: DTZ001 - wall time of the installation
    counted = Slice(7, is_settled=True, counts={GroupId(1): RunCounts(0, 3, 1)}, lost=1)
    await database.write(schema.prepare, "here")
    await database.write(reports.store_slices, {day: counted})
    await database.write(reports.recount_slices)
    await database.write(schema.downgrade, "0004")
    await database.write(schema.upgrade, "here")
    found = await database.read(reports.load_slices)
    assert found == {day: Slice(0, is_settled=False, counts=counted.counts, lost=0, recounts=0)}


async def test_upgrading_what_is_up_to_date_changes_nothing(database: Database) -> None:
    await database.write(schema.prepare, "here")
    await database.write(lambda c: c.execute(job_info.insert().values(**JOB_COLUMNS)))
    await database.write(schema.upgrade, "here")
    await database.write(schema.prepare, "here")
    assert len(await database.read(lambda c: c.execute(job_info.select()).all())) == 1


def set_version(connection: Connection, version: str) -> None:
    connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = :version"), {"version": version})


async def test_a_newer_schema_is_refused_by_start_and_upgrade(database: Database) -> None:
    await database.write(schema.prepare, "here")
    await database.write(set_version, "9999")
    for refused in (schema.prepare, schema.upgrade):
        with pytest.raises(SchemaVersionError, match=r"9999.*newer.*upgrade Jobwheel"):
            await database.write(refused, "here")
    assert await database.read(schema.current_version) == "9999"


async def test_an_older_schema_is_refused_by_the_start_which_names_the_command(database: Database) -> None:
    await database.write(schema.prepare, "here")
    await database.write(schema.downgrade, "0001")
    with pytest.raises(SchemaVersionError, match=rf"0001.*{schema.newest_version()}.*jobwheel db upgrade"):
        await database.write(schema.prepare, "here")
    await database.write(schema.upgrade, "here")
    await database.write(schema.prepare, "here")


@pytest.mark.parametrize("table", ["xxl_job_info", "customers"])
async def test_somebody_elses_database_is_refused_and_left_alone(database: Database, table: str) -> None:
    await database.write(lambda c: c.execute(text(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")))
    for refused in (schema.prepare, schema.upgrade):
        with pytest.raises(SchemaVersionError, match=f"not Jobwheel's.*{table}"):
            await database.write(refused, "here")
    assert await database.read(tables) == {table}


@pytest.mark.parametrize("url", TRANSACTIONAL, indirect=True)
async def test_a_step_that_fails_leaves_nothing_behind(database: Database) -> None:
    def fail(connection: Connection) -> None:
        schema.prepare(connection, "here")
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(fail)
    assert await database.read(tables) == set()
    assert await database.read(schema.current_version) is None
