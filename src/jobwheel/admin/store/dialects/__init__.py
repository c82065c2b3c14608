"""Every difference between databases: the hot batch statements, written by hand for each, and a few more."""

from sqlalchemy import Connection

from jobwheel.admin.store.dialects.base import Statements
from jobwheel.admin.store.dialects.mysql import MysqlStatements
from jobwheel.admin.store.dialects.postgresql import PostgresqlStatements
from jobwheel.admin.store.dialects.sqlite import SqliteStatements

__all__ = ["Statements", "statements"]

_STATEMENTS: dict[str, Statements] = {
    "sqlite": SqliteStatements(),
    "postgresql": PostgresqlStatements(),
    "mysql": MysqlStatements(),
}


def statements(connection: Connection) -> Statements:
    """The statements of the connection's database."""
    return _STATEMENTS[connection.dialect.name]
