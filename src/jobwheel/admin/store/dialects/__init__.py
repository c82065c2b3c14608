"""Every difference between databases: the hot batch statements, written by hand for each."""

from sqlalchemy import Connection

from jobwheel.admin.store.dialects.sqlite import SqliteStatements

_STATEMENTS = {"sqlite": SqliteStatements()}


def statements(connection: Connection) -> SqliteStatements:
    """The hot statements of the connection's database."""
    return _STATEMENTS[connection.dialect.name]
