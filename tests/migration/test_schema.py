"""The schema's steps, up and down, and what is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, inspect, text

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store import runs, schema
from jobwheel.admin.store.errors import SchemaVersionError
from jobwheel.admin.store.sqlite_database import open_engine
from jobwheel.admin.store.tables import VERSION_TABLE, job_info, job_log, metadata
from jobwheel.admin.store.zone import InstallationZone
from tests.support.store import JOB_COLUMNS, ZONE, new_run


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    opened = open_engine(tmp_path / "jobwheel.db")
    yield opened
    opened.dispose()


def tables(connection: Connection) -> set[str]:
    return set(inspect(connection).get_table_names()) - {VERSION_TABLE}


def test_an_empty_database_gets_the_whole_schema(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
    with engine.begin() as connection:
        assert tables(connection) == set(metadata.tables)
        assert schema.current_version(connection) == schema.newest_version()


def test_the_steps_make_what_the_tables_say(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
        options = {"version_table": VERSION_TABLE, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def test_every_index_is_made_with_its_condition(engine: Engine, tmp_path: Path) -> None:
    other = open_engine(tmp_path / "from_tables.db")
    query = text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE :version")
    try:
        with engine.begin() as stepped, other.begin() as direct:
            schema.prepare(stepped, "here")
            metadata.create_all(direct)
            made: list[dict[str, str]] = [
                dict(c.execute(query, {"version": f"%{VERSION_TABLE}%"}).all()) for c in (stepped, direct)
            ]
    finally:
        other.dispose()
    indexes = [{name: sql for name, sql in each.items() if sql.startswith("CREATE INDEX")} for each in made]
    assert indexes[0] == indexes[1]
    assert sum(" WHERE " in sql for sql in indexes[0].values()) >= 5


def test_down_and_up_again_with_data_in_the_tables(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
        connection.execute(job_info.insert().values(**JOB_COLUMNS))
        runs.insert_runs(connection, InstallationZone(ZONE), [new_run(NodeId(1)) for _ in range(10)])
    with engine.begin() as connection:
        schema.downgrade(connection, "base")
        assert tables(connection) == set()
        assert schema.current_version(connection) is None
    with engine.begin() as connection:
        schema.upgrade(connection, "here")
        assert tables(connection) == set(metadata.tables)
        assert connection.execute(job_log.select()).all() == []


def test_upgrading_what_is_up_to_date_changes_nothing(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
        connection.execute(job_info.insert().values(**JOB_COLUMNS))
    with engine.begin() as connection:
        schema.upgrade(connection, "here")
        schema.prepare(connection, "here")
        assert len(connection.execute(job_info.select()).all()) == 1


def set_version(connection: Connection, version: str) -> None:
    connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = :version"), {"version": version})


def test_a_newer_schema_is_refused_by_start_and_upgrade(engine: Engine) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
        set_version(connection, "9999")
    for refused in (schema.prepare, schema.upgrade):
        with engine.begin() as connection, pytest.raises(SchemaVersionError, match=r"9999.*newer.*upgrade Jobwheel"):
            refused(connection, "here")
    with engine.begin() as connection:
        assert schema.current_version(connection) == "9999"


def test_an_older_schema_is_refused_by_the_start_which_names_the_command(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine.begin() as connection:
        schema.prepare(connection, "here")
    # There is one version as yet: the program is given a newer one.
    monkeypatch.setattr(schema, "newest_version", lambda: "0002")
    with engine.begin() as connection, pytest.raises(SchemaVersionError, match=r"0001.*0002.*jobwheel db upgrade"):
        schema.prepare(connection, "here")


@pytest.mark.parametrize("table", ["xxl_job_info", "customers"])
def test_somebody_elses_database_is_refused_and_left_alone(engine: Engine, table: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)"))
    for refused in (schema.prepare, schema.upgrade):
        with engine.begin() as connection, pytest.raises(SchemaVersionError, match=f"not Jobwheel's.*{table}"):
            refused(connection, "here")
    with engine.begin() as connection:
        assert tables(connection) == {table}


def test_a_step_that_fails_leaves_nothing_behind(engine: Engine) -> None:
    with pytest.raises(LookupError), engine.begin() as connection:  # noqa: PT012 - the transaction is what fails
        schema.prepare(connection, "here")
        raise LookupError
    with engine.begin() as connection:
        assert tables(connection) == set()
        assert schema.current_version(connection) is None
