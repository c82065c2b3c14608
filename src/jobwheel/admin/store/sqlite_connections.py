"""Connections to an SQLite file: the ones that write, the ones that read, and transactions on them."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql.selectable import FromClause

from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.admin.store.sqlite_commits import dbapi_connection

Answer = TypeVar("Answer")

_BUSY_TIMEOUT_MS = 5_000
# FULL: what is committed survives a power cut. The cache holds the pages that a busy hour touches; a checkpoint only
# each 16 MiB of log, since each one writes and syncs the same pages again.
_WRITER_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "temp_store=MEMORY",
    "cache_size=-16384",
    "wal_autocheckpoint=4096",
)
_CONFLICT_TRIES = 5


class _Compiler(SQLiteCompiler):
    """Writes what is said of an index; SQLAlchemy leaves it out for SQLite."""

    def get_from_hint_text(self, table: FromClause, text: str | None) -> str | None:  # noqa: ARG002 - the base's
        return text


def open_engine(path: Path) -> Engine:
    """An engine with the one connection that writes. Each transaction takes the write lock when it begins.

    Raises:
        DatabaseUnusableError: the file cannot be opened or written; says why.
    """
    engine = _engine(path, "rwc")

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: object) -> None:
        for pragma in _WRITER_PRAGMAS:
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
        return sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            check_same_thread=False,
            isolation_level=None,
            timeout=_BUSY_TIMEOUT_MS / 1000,
        )

    engine = create_engine("sqlite://", creator=connect, poolclass=StaticPool)
    engine.dialect.statement_compiler = _Compiler
    return engine


class Transactions:
    """An engine's one connection, and the transactions on it: one after the other, whichever thread comes.

    It is kept from one transaction to the next: to take it out of the pool and to put it back costs more than a small
    transaction does.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection = engine.connect()

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run `work` in a transaction, again if another process (a tool, a backup) was in the way for long."""
        for _ in range(_CONFLICT_TRIES - 1):
            try:
                return self._run_once(work)
            except (OperationalError, sqlite3.OperationalError) as error:
                if not _is_busy(error):
                    raise
        return self._run_once(work)

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
        self._engine.dispose()

    def _run_once(self, work: Callable[[Connection], Answer]) -> Answer:
        try:
            with self._connection.begin():
                return work(self._connection)
        except BaseException:
            # In whatever state SQLAlchemy has it: the next one begins anew, and closing rolls the driver's back.
            self._connection.close()
            self._connection = self._engine.connect()
            raise


def _is_busy(error: OperationalError | sqlite3.OperationalError) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def cause_of(error: Exception) -> str:
    """What the driver or the system said, without SQLAlchemy's words around it."""
    if isinstance(error, DBAPIError):
        return str(error.orig)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})"
    return str(error)
