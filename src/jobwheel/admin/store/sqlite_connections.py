"""Connections to an SQLite file: the ones that write, and the ones that read."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql.selectable import FromClause

from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.admin.store.sqlite_commits import dbapi_connection

_BUSY_TIMEOUT_MS = 5_000
# FULL: what is committed survives a power cut. The cache holds the pages that a busy hour touches.
_WRITER_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "temp_store=MEMORY",
    "cache_size=-16384",
)
LOG_PAGES = 4096
"""A checkpoint only each 16 MiB of log, since each one writes and syncs the same pages again."""


class _Compiler(SQLiteCompiler):
    """Writes what is said of an index; SQLAlchemy leaves it out for SQLite."""

    def get_from_hint_text(self, table: FromClause, text: str | None) -> str | None:  # noqa: ARG002 - the base's
        return text


def open_engine(path: Path, log_pages: int = LOG_PAGES) -> Engine:
    """An engine with the one connection that writes. Each transaction takes the write lock when it begins.

    A commit that finds `log_pages` in the log copies them into the file.

    Raises:
        DatabaseUnusableError: the file cannot be opened or written; says why.
    """
    engine = _engine(path, "rwc")

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        for pragma in (*_WRITER_PRAGMAS, f"wal_autocheckpoint={log_pages}"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The default mode lets two writers read the same row first and both change it.
        dbapi_connection(connection).execute("BEGIN IMMEDIATE")

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with engine.begin() as connection:
            # A file that can only be read lets a transaction begin, and refuses the first write.
            version = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            connection.exec_driver_sql(f"PRAGMA user_version = {version}")
    except (OSError, DBAPIError) as error:
        engine.dispose()
        raise DatabaseUnusableError(str(path), cause_of(error)) from error
    path.chmod(0o600)
    return engine


def open_reader(path: Path) -> Engine:
    """An engine with one connection that can read and nothing else."""
    engine = _engine(path, "ro")

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        connection.execute("PRAGMA query_only=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        dbapi_connection(connection).execute("BEGIN")

    return engine


def _engine(path: Path, mode: str) -> Engine:
    """An engine with one connection. The path goes past SQLAlchemy's URLs, which would read a `?` or `%` in it."""

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=_BUSY_TIMEOUT_MS / 1000,
        )
        connection.text_factory = _text
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    engine.dialect.statement_compiler = _Compiler
    return engine


def _text(data: bytes) -> str:
    """SQLite does not look whether a text is one. What is shown is shown; what must be right is looked at apart."""
    return data.decode(errors="replace")


def cause_of(error: Exception) -> str:
    """What the driver or the system said, without SQLAlchemy's words around it."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})"
    return str(error)
