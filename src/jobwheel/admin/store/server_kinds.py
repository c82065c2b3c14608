"""How each kind of database server is reached, set up, and asked for its version and its clock."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Connection
from sqlalchemy.engine import URL

from jobwheel.admin.store.errors import DatabaseUrlError
from jobwheel.admin.store.mysql_connecting import connect

CONNECT_TIMEOUT_S = 10
_LOCK_TIMEOUT_S = 10
_IDLE_S = 60
_TLS_MODES = ("disable", "require", "verify-full")


class DriverArguments(Protocol):
    """Gives the driver's arguments for a URL."""

    def __call__(self, url: URL, *, only_reads: bool) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class ServerKind:
    """What differs between servers before the first statement.

    Attributes:
        driver: SQLAlchemy's name of dialect and driver.
        package: what the driver is called where packages are got.
        parameters: what may stand behind the `?` of a URL.
        arguments: gives the driver's arguments for a URL.
        session: statements that set a new connection up; True means one that only reads.
        version: the server's kind, its version, and the oldest that will do.
        encoding: what texts are stored in.
        clock: a query for the server's clock, epoch milliseconds.
    """

    driver: str
    package: str
    parameters: tuple[str, ...]
    arguments: DriverArguments
    session: Callable[[bool], tuple[str, ...]]
    version: Callable[[Connection], tuple[str, tuple[int, ...], tuple[int, ...]]]
    encoding: Callable[[Connection], str]
    clock: str


def _tls(url: URL) -> ssl.SSLContext | None:
    mode = url.query.get("sslmode", "disable")
    if mode not in _TLS_MODES:
        shown = url.render_as_string(hide_password=True)
        raise DatabaseUrlError(shown, f"sslmode is one of {', '.join(_TLS_MODES)}, not {mode}")
    if mode == "disable":
        return None
    context = ssl.create_default_context()
    if mode == "require":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _postgresql_arguments(url: URL, *, only_reads: bool) -> Mapping[str, Any]:
    settings = {
        "application_name": "jobwheel",
        "timezone": "UTC",
        "default_transaction_isolation": "read committed",
        "default_transaction_read_only": "on" if only_reads else "off",
        "lock_timeout": f"{_LOCK_TIMEOUT_S}s",
        "idle_in_transaction_session_timeout": f"{_IDLE_S}s",
        # A plan made while a table was empty must not outlive that; and it may use what the values say.
        "plan_cache_mode": "force_custom_plan",
        "jit": "off",
        # Disks of today: with the server's default a plan rather reads the whole log backwards than a hundred rows by
        # an index, and the fewer of those there are the longer it reads.
        "random_page_cost": "1.1",
    }
    arguments: dict[str, Any] = {"server_settings": settings, "timeout": CONNECT_TIMEOUT_S, "ssl": _tls(url) or False}
    if "host" in url.query:
        arguments["host"] = url.query["host"]
    return arguments


def _mysql_arguments(url: URL, *, only_reads: bool) -> Mapping[str, Any]:  # noqa: ARG001 - the session says it
    arguments: dict[str, Any] = {"connect_timeout": CONNECT_TIMEOUT_S, "charset": "utf8mb4"}
    arguments["async_creator_fn"] = connect
    context = _tls(url)
    if context is not None:
        arguments["ssl"] = context
    if "unix_socket" in url.query:
        arguments["unix_socket"] = url.query["unix_socket"]
    return arguments


def _mysql_session(only_reads: bool) -> tuple[str, ...]:  # noqa: FBT001 - a field of ServerKind
    mode = "STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"
    # Two indexes at once give rows in no order: of a job's failed runs all would be read and sorted for the newest.
    merge = "optimizer_switch='index_merge_intersection=off'"
    settings = f"SET SESSION sql_mode='{mode}', time_zone='+00:00', innodb_lock_wait_timeout={_LOCK_TIMEOUT_S}, {merge}"
    # A session whose node fell silent must not hold its locks for the eight hours that the server would wait. MySQL has
    # no such time-out for transactions alone; idle connections are made anew.
    settings += f" /*M!100300 , idle_transaction_timeout={_IDLE_S} *//*!80000 , wait_timeout={2 * _IDLE_S} */"
    # Without READ COMMITTED a claim locks many times the rows that it takes, and overlapping ones deadlock.
    isolation = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
    return (settings, isolation, "SET SESSION TRANSACTION READ ONLY") if only_reads else (settings, isolation)


def _postgresql_version(connection: Connection) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    return "postgresql", _found(connection), (14,)


def _mysql_version(connection: Connection) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    text = str(connection.exec_driver_sql("SELECT VERSION()").scalar_one())
    return (
        ("mariadb", _found(connection), (10, 6)) if "mariadb" in text.lower() else ("mysql", _found(connection), (8,))
    )


def _postgresql_encoding(connection: Connection) -> str:
    return str(connection.exec_driver_sql("SHOW server_encoding").scalar_one())


def _mysql_encoding(_: Connection) -> str:
    # Our tables name their own, whatever the database has.
    return "UTF8"


def _found(connection: Connection) -> tuple[int, ...]:
    return tuple(part for part in connection.dialect.server_version_info or () if isinstance(part, int))


_POSTGRESQL = ServerKind(
    driver="postgresql+asyncpg",
    package="asyncpg",
    parameters=("sslmode", "host"),
    arguments=_postgresql_arguments,
    session=lambda _: (),
    version=_postgresql_version,
    encoding=_postgresql_encoding,
    clock="SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
)
# One dialect for both: what differs between the two is not used.
_MYSQL = ServerKind(
    driver="mysql+asyncmy",
    package="asyncmy",
    parameters=("sslmode", "unix_socket"),
    arguments=_mysql_arguments,
    session=_mysql_session,
    version=_mysql_version,
    encoding=_mysql_encoding,
    clock="SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)",
)

SERVER_KINDS: Mapping[str, ServerKind] = {"postgresql": _POSTGRESQL, "mysql": _MYSQL, "mariadb": _MYSQL}
"""The kinds by the scheme of a URL."""

SERVER_SCHEMES = tuple(SERVER_KINDS)
