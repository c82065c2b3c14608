"""What PostgreSQL and MariaDB say differently, of a connection of theirs."""

from sqlalchemy import Connection

_SLEEP = {"postgresql": "SELECT pg_sleep({})", "mysql": "SELECT SLEEP({})"}
_OWN_ID = {"postgresql": "SELECT pg_backend_pid()", "mysql": "SELECT CONNECTION_ID()"}


def sleep(connection: Connection, seconds: float) -> None:
    """Keep the server at work for this connection, and what it holds locked with it."""
    connection.exec_driver_sql(_SLEEP[connection.dialect.name].format(seconds))


def own_id(connection: Connection) -> int:
    """What the server calls this connection."""
    return int(connection.exec_driver_sql(_OWN_ID[connection.dialect.name]).scalar_one())


_CONFLICT = {
    "postgresql": "DO $$ BEGIN RAISE EXCEPTION 'made by a test' USING ERRCODE = '40001'; END $$",
    "mysql": "SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'made by a test'",
}


def conflict(connection: Connection) -> None:
    """Fail as a transaction does that the server has chosen to end a deadlock."""
    connection.exec_driver_sql(_CONFLICT[connection.dialect.name])
