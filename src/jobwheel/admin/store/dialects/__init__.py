"""Every difference between databases: the hot batch statements, written by hand for each, and a few more."""

import functools

from sqlalchemy import Connection

from jobwheel.admin.store.dialects.base import Statements

__all__ = ["Statements", "statements"]


def statements(connection: Connection) -> Statements:
    """The statements of the connection's database."""
    return _statements(connection.dialect.name)


@functools.cache
def _statements(dialect: str) -> Statements:
    # A process has one kind of database: what the others need would take 3 MiB of it.
    if dialect == "sqlite":
        from jobwheel.admin.store.dialects.sqlite import SqliteStatements  # noqa: PLC0415 - see above

        return SqliteStatements()
    if dialect == "postgresql":
        from jobwheel.admin.store.dialects.postgresql import PostgresqlStatements  # noqa: PLC0415 - see above

        return PostgresqlStatements()
    from jobwheel.admin.store.dialects.mysql import MysqlStatements  # noqa: PLC0415 - see above

    return MysqlStatements()
