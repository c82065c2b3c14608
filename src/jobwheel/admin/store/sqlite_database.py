"""SQLite: one writer thread, a few query-only readers."""

import asyncio
import fcntl
import os
import queue
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlalchemy.sql.selectable import FromClause

from jobwheel.admin.store.database_base import Database, parsed_url
from jobwheel.admin.store.errors import DatabaseInUseError, DatabaseUnusableError, DatabaseUrlError
from jobwheel.admin.store.sqlite_transactions import Transactions
from jobwheel.admin.store.sqlite_writer import SqliteWriter, dbapi_connection
from jobwheel.kernel.clock import Clock

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_BUSY_TIMEOUT_MS = 5_000
_READERS = 3
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
_OLDEST_LIBRARY = (3, 35, 0)


class SqliteDatabase(Database):
    """A database in one file: one writer thread, a whole transaction per hop, and a few query-only readers.

    While it is started no other admin process can use the file; tools of the command line can (`exclusive=False`).
    """

    def __init__(self, url: str, clock: Clock, *, exclusive: bool = True) -> None:
        super().__init__(clock)
        self.path = sqlite_path(url)
        self._exclusive = exclusive
        self._lock_file: int | None = None
        self._writer = SqliteWriter(lambda: Transactions(open_engine(self.path)))
        self._readers: ThreadPoolExecutor | None = None
        self._reading: queue.SimpleQueue[Transactions] = queue.SimpleQueue()
        self._clock_origin_ms = clock.now() - clock.monotonic() * 1000

    @property
    def kind(self) -> str:
        return "sqlite"

    @property
    def where(self) -> str:
        return str(self.path)

    @property
    def is_for_one_node(self) -> bool:
        return self._exclusive

    def now_ms(self) -> int:
        """The monotonic clock, set to the host's wall clock when the database was made."""
        return int(self._clock_origin_ms + self.clock.monotonic() * 1000)

    async def write(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        try:
            answer: Answer = await self._writer.run(lambda connection: work(connection, *args, **kwargs))
        except (DBAPIError, sqlite3.Error) as error:
            if not _is_unusable(error):
                raise
            raise DatabaseUnusableError(str(self.path), _cause(error)) from error
        return answer

    async def read(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        assert self._readers is not None, "the database is not started"

        def transaction() -> Answer:
            transactions = self._reading.get()
            try:
                return transactions.run(lambda connection: work(connection, *args, **kwargs))
            finally:
                self._reading.put(transactions)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._readers, transaction)
        except (DBAPIError, sqlite3.Error) as error:
            if not _is_unusable(error):
                raise
            raise DatabaseUnusableError(str(self.path), _cause(error)) from error

    async def on_start(self) -> None:
        found = sqlite3.sqlite_version_info
        if found < _OLDEST_LIBRARY:
            library, oldest = (".".join(map(str, each)) for each in (found, _OLDEST_LIBRARY))
            reason = f"this Python's SQLite library is {library}, and {oldest} is the oldest that will do"
            raise DatabaseUnusableError(str(self.path), f"{reason}: use a newer Python, or a database server")
        if self._exclusive:
            self._lock_file = _lock(self.path)
        loop = asyncio.get_running_loop()
        await self._writer.start()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="jobwheel-reader")
        for _ in range(_READERS):
            engine = await loop.run_in_executor(self._readers, open_reader, self.path)
            self._reading.put(Transactions(engine))

    async def on_stop(self) -> None:
        # The writer closes last: then its close puts the write-ahead log into the file, which a reader's cannot.
        if self._readers is not None:
            self._readers.shutdown(wait=True)
            self._readers = None
        while not self._reading.empty():
            self._reading.get().close()
        await self._writer.stop()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def sqlite_path(url: str) -> Path:
    """The file that a database URL names.

    Raises:
        DatabaseUrlError: no URL, or no file (a database in memory would lose every run).
    """
    parsed = parsed_url(url)
    if not parsed.database or parsed.database == ":memory:":
        raise DatabaseUrlError(url, "it names no file, and a database in memory would lose every run")
    if "?" in url:
        raise DatabaseUrlError(url, "parameters are not supported; a question mark in a path is written %3F")
    return Path(parsed.database).absolute()


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
        raise DatabaseUnusableError(str(path), _cause(error)) from error
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


def _is_unusable(error: DBAPIError | sqlite3.Error) -> bool:
    """Whether it cannot be done at the moment. A malformed file has no class of its own."""
    cause = getattr(error, "orig", error)
    return isinstance(cause, sqlite3.OperationalError) or type(cause) is sqlite3.DatabaseError


def _lock(path: Path) -> int:
    """Take the lock that proves that no other admin runs on this file. It goes with the process, however it ends."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DatabaseUnusableError(str(path), _cause(error)) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 32).decode(errors="replace").strip()
        os.close(handle)
        raise DatabaseInUseError(str(path), f" (process {holder})" if holder else "") from error
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _cause(error: Exception) -> str:
    if isinstance(error, DBAPIError):
        return str(error.orig)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})"
    return str(error)
