"""The database that a URL names, and what its errors mean."""

from pathlib import Path

from jobwheel.admin.store.database_base import Database, parsed_url
from jobwheel.admin.store.errors import DatabaseUrlError
from jobwheel.admin.store.server_kinds import SERVER_KINDS, SERVER_SCHEMES
from jobwheel.admin.store.sqlite_database import SqliteDatabase, sqlite_path
from jobwheel.admin.store.trouble import is_outage, reason_of
from jobwheel.kernel.clock import Clock

__all__ = [
    "DEFAULT_CONNECTIONS",
    "DEFAULT_TIMEOUT_S",
    "Database",
    "is_outage",
    "missing_file",
    "open_database",
    "reason_of",
]

DEFAULT_CONNECTIONS = 10
"""How many connections to a server an admin holds at most."""

DEFAULT_TIMEOUT_S = 30.0
"""How long a transaction on a server may take: one that takes longer hangs."""


def open_database(
    url: str,
    clock: Clock,
    *,
    exclusive: bool = True,
    apart: bool = False,
    connections: int = DEFAULT_CONNECTIONS,
    timeout_s: float = DEFAULT_TIMEOUT_S,
) -> Database:
    """The database of a URL, to be started.

    Args:
        url: `sqlite:////file`, `postgresql://user:password@host/name`, `mysql://…` or `mariadb://…`.
        clock: the host's clocks.
        exclusive: no other admin may use an SQLite file meanwhile; servers are shared anyway.
        apart: batches are written to an SQLite file by a process of its own, while this one sends.
        connections: the most that are held to a server.
        timeout_s: how long a server may take for a transaction before its connection is given up.

    Raises:
        DatabaseUrlError: the URL names nothing that can be used.
    """
    scheme = parsed_url(url).drivername
    if scheme == "sqlite":
        return SqliteDatabase(url, clock, exclusive=exclusive, apart=apart)
    if scheme in SERVER_KINDS:
        # What speaks to servers takes 8 MiB, which SQLite does without.
        from jobwheel.admin.store.server_database import ServerDatabase, ServerLimits  # noqa: PLC0415 - see above

        return ServerDatabase(SERVER_KINDS[scheme], url, clock, ServerLimits(connections, timeout_s))
    shown = parsed_url(url).render_as_string(hide_password=True)
    known = ", ".join(("sqlite", *SERVER_SCHEMES))
    if scheme.partition("+")[0] in SERVER_KINDS:
        raise DatabaseUrlError(shown, f"{scheme} names a driver, which Jobwheel chooses; the kinds are {known}")
    raise DatabaseUrlError(shown, f"{scheme} is not supported; the kinds are {known}")


def missing_file(url: str) -> Path | None:
    """The file of an SQLite URL, if it is not there. Whether a server has a database shows when it is started."""
    if parsed_url(url).drivername != "sqlite":
        return None
    path = sqlite_path(url)
    return None if path.exists() else path
