"""The schema's version: made, upgraded, and checked at the start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.errors import SchemaVersionError
from jobwheel.admin.store.tables import VERSION_TABLE
from jobwheel.admin.store.trouble import is_refusal

_MIGRATIONS = Path(__file__).parent / "migrations"


def newest_version() -> str:
    """The version that this program needs."""
    head = ScriptDirectory(str(_MIGRATIONS)).get_current_head()
    assert head is not None, "the package has no migrations"
    return head


def current_version(connection: Connection) -> str | None:
    """The version that the database has; None if it has none."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def upgrade(connection: Connection, where: str, target: str = "head") -> None:
    """Bring the schema to `target`, in the caller's transaction (MySQL commits each change of the schema at once).

    Raises:
        SchemaVersionError: the database has tables that are not ours, or a version that this program does not know, or
            its user has too few rights.
    """
    with statements(connection).schema_lock(connection):
        version = current_version(connection)
        if version is None:
            _refuse_foreign_tables(connection, where)
        else:
            _refuse_unknown(version, where)
        try:
            command.upgrade(_config(connection), target)
        except DBAPIError as error:
            if not is_refusal(error):
                raise
            what_to_do = "its user may not change it: run `jobwheel db upgrade` once as one who may create tables"
            raise SchemaVersionError(where, version or "nothing", newest_version(), what_to_do) from error


def downgrade(connection: Connection, target: str) -> None:
    """Step the schema down to `target` (`base` = nothing of it left)."""
    command.downgrade(_config(connection), target)


def prepare(connection: Connection, where: str) -> None:
    """Make the schema of an empty database; check the version of another.

    Raises:
        SchemaVersionError: the schema is older or newer than this program's, or is somebody else's.
    """
    version = current_version(connection)
    if version is None:
        upgrade(connection, where)
    elif version != newest_version():
        _refuse_unknown(version, where)
        raise SchemaVersionError(where, version, newest_version(), "run `jobwheel db upgrade`")


def _refuse_foreign_tables(connection: Connection, where: str) -> None:
    # A schema that was stepped down to nothing leaves the table of its version.
    tables = [name for name in inspect(connection).get_table_names() if name != VERSION_TABLE]
    if tables:
        raise SchemaVersionError(
            where, "unknown", newest_version(), f"it holds tables that are not Jobwheel's ({', '.join(tables[:5])})"
        )


def _refuse_unknown(version: str, where: str) -> None:
    known = {script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions()}
    if version not in known:
        raise SchemaVersionError(where, version, newest_version(), "it is newer: upgrade Jobwheel itself")


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    config.attributes["connection"] = connection
    return config
