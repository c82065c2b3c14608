"""The schema's version: made, upgraded, and checked at the start."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import Connection, delete, false, func, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, OperationalError

from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.errors import SchemaVersionError
from jobwheel.admin.store.tables import VERSION_TABLE, metadata
from jobwheel.admin.store.trouble import is_refusal, trouble_of

UNFINISHED_TABLE = "jobwheel_unfinished_upgrade"
"""It is there while an upgrade goes on, where a transaction does not undo one that is broken off."""

_VERSION = sa.table(VERSION_TABLE, sa.column("version_num"))
_UNFINISHED = sa.table(UNFINISHED_TABLE, sa.column("since"))
_MIGRATIONS = Path(__file__).parent / "migrations"


def newest_version() -> str:
    """The version that this program needs."""
    return versions()[-1]


def versions() -> list[str]:
    """The versions that this program knows, oldest first: the files of the steps are named by them."""
    # Alembic knows them as well, but is not loaded to be told that nothing is to be done.
    return sorted(path.stem[1:].partition("_")[0] for path in _MIGRATIONS.glob("versions/v*.py"))


def current_version(connection: Connection) -> str | None:
    """The version that the database has; None if it has none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.execute(select(_VERSION.c.version_num)).scalar_one_or_none()
    return version


def upgrade(connection: Connection, where: str, target: str = "head") -> None:
    """Bring the schema to `target`, in the caller's transaction.

    MySQL and MariaDB commit each change of the schema at once. There a table marks an upgrade that has begun: what a
    first one that was broken off has left is removed, and made anew.

    Raises:
        SchemaVersionError: the database has tables that are not ours, or a version that this program does not know, or
            its user has too few rights, or an upgrade that was broken off cannot be brought to its end.
    """
    with statements(connection).schema_lock(connection):
        version = current_version(connection)
        try:
            broken_off = _is_unfinished(connection)
            if broken_off and (version is None or _began_from_nothing(connection)):
                _remove_half_made(connection, where)
                version = None
            elif version is not None:
                _refuse_unknown(version, where)
            else:
                _refuse_foreign_tables(connection, where)
            _upgrade(connection, target, from_nothing=version is None)
        except DBAPIError as error:
            what_to_do = _what_to_do(error, broken_off=version is not None and broken_off)
            if what_to_do is None:
                raise
            raise SchemaVersionError(where, version or "nothing", newest_version(), what_to_do) from error


def _upgrade(connection: Connection, target: str, *, from_nothing: bool) -> None:
    # An admin whose schema is there does without Alembic, which takes 6 MiB and would stay for good.
    from jobwheel.admin.store.migrating import step_up  # noqa: PLC0415 - see above

    if statements(connection).is_ddl_transactional:
        step_up(connection, _MIGRATIONS, target)
        return
    connection.exec_driver_sql(f"CREATE TABLE IF NOT EXISTS {UNFINISHED_TABLE} (since TIMESTAMP)")
    if from_nothing:
        # The first change of the schema commits it. A first upgrade has several steps, each with a version of its own.
        connection.execute(insert(_UNFINISHED).values(since=func.current_timestamp()))
    step_up(connection, _MIGRATIONS, target)
    # Going commits the new version first, and may then wait, or be broken off: what is left of it must say nothing.
    connection.execute(delete(_UNFINISHED))
    connection.exec_driver_sql(f"DROP TABLE {UNFINISHED_TABLE}")


def _what_to_do(error: DBAPIError, *, broken_off: bool) -> str | None:
    if is_refusal(error):
        return "its user may not change it: run `jobwheel db upgrade` once as one who may create tables"
    if broken_off and trouble_of(error) is None:
        return (
            f"an upgrade of it was broken off and cannot go on ({error.orig}): restore it from a backup, upgrade again"
        )
    return None


def _is_unfinished(connection: Connection) -> bool:
    return not statements(connection).is_ddl_transactional and inspect(connection).has_table(UNFINISHED_TABLE)


def _began_from_nothing(connection: Connection) -> bool:
    """Whether the upgrade that was broken off was a first one, which had come to the end of some of its steps."""
    # What has read a table keeps it from going; whoever asks may wait for the one who is about to remove it.
    with connection.begin_nested() as savepoint:
        row = connection.execute(select(_UNFINISHED.c.since)).first()
        savepoint.rollback()
    return row is not None


def _remove_half_made(connection: Connection, where: str) -> None:
    """Remove what a first upgrade made before it was broken off: empty tables, since nobody has worked with them."""
    there = set(inspect(connection).get_table_names())
    ours = [table for table in reversed(metadata.sorted_tables) if table.name in there]
    for table in ours:
        if connection.execute(select(table.c[table.primary_key.columns[0].name]).limit(1)).first() is not None:
            what_to_do = f"it is half made, but {table.name} holds rows: remove its tables if they are nobody's"
            raise SchemaVersionError(where, "nothing", newest_version(), what_to_do)
    for table in ours:
        table.drop(connection)
    connection.exec_driver_sql(f"DROP TABLE IF EXISTS {VERSION_TABLE}")
    _refuse_foreign_tables(connection, where)


def downgrade(connection: Connection, target: str) -> None:
    """Step the schema down to `target` (`base` = nothing of it left)."""
    from jobwheel.admin.store.migrating import step_down  # noqa: PLC0415 - as for an upgrade

    step_down(connection, _MIGRATIONS, target)


def prepare(connection: Connection, where: str) -> None:
    """Make the schema of an empty database; check the version of another, and that this user may work with it.

    Raises:
        SchemaVersionError: the schema is older or newer than this program's, or is somebody else's, or not whole.
        DBAPIError: a right is missing, or nothing can be written; see `trouble_of`.
    """
    version = current_version(connection)
    if version is None or (
        version != newest_version() and _is_unfinished(connection) and _began_from_nothing(connection)
    ):
        upgrade(connection, where)
    elif version != newest_version():
        _refuse_unknown(version, where)
        raise SchemaVersionError(where, version, newest_version(), "run `jobwheel db upgrade`")
    _check_tables(connection, where)


def _check_tables(connection: Connection, where: str) -> None:
    """Do nothing to each table, in each way that an admin does something: what would fail later fails here."""
    try:
        for table in metadata.sorted_tables:
            columns = list(table.c)
            nothing = select(*columns).where(false())
            connection.execute(insert(table).from_select(columns, nothing, include_defaults=False))
            connection.execute(update(table).values({columns[-1]: columns[-1]}).where(false()))
            connection.execute(delete(table).where(false()))
    except DBAPIError as error:
        # SQLite says in words only that a table or a column is missing.
        if trouble_of(error) is not None or (isinstance(error, OperationalError) and "no " not in str(error.orig)):
            raise
        what_to_do = f"it is not whole ({_first_line(error)}): restore it from a backup"
        raise SchemaVersionError(where, newest_version(), newest_version(), what_to_do) from error


def _first_line(error: DBAPIError) -> str:
    said = error.orig.args[-1] if error.orig is not None and error.orig.args else error
    return str(said).partition("\n")[0]


def _refuse_foreign_tables(connection: Connection, where: str) -> None:
    # A schema that was stepped down to nothing leaves the table of its version.
    known = (VERSION_TABLE, UNFINISHED_TABLE)
    tables = [name for name in inspect(connection).get_table_names() if name not in known]
    if tables:
        named = ", ".join(tables[:5])
        what_to_do = f"it holds tables that are not Jobwheel's ({named}): give Jobwheel an empty database of its own"
        raise SchemaVersionError(where, "unknown", newest_version(), what_to_do)


def _refuse_unknown(version: str, where: str) -> None:
    if version not in versions():
        raise SchemaVersionError(where, version, newest_version(), "it is newer: upgrade Jobwheel itself")
