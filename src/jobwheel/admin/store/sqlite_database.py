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

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.store.database_base import Database, parsed_url
from jobwheel.admin.store.errors import DatabaseInUseError, DatabaseUnusableError, DatabaseUrlError
from jobwheel.admin.store.sqlite_checkpoints import LOG_PAGES_BESIDE
from jobwheel.admin.store.sqlite_connections import LOG_PAGES, cause_of, open_engine, open_reader
from jobwheel.admin.store.sqlite_process import SqliteProcess
from jobwheel.admin.store.sqlite_transactions import Transactions
from jobwheel.admin.store.sqlite_writer import SqliteWriter
from jobwheel.kernel.clock import Clock

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

_READERS = 3
_HEIR_WAIT_S = 5.0
_OLDEST_LIBRARY = (3, 35, 0)


class SqliteDatabase(Database):
    """A database in one file: one writer thread, a whole transaction per hop, and a few query-only readers.

    While it is started no other admin process can use the file; tools of the command line can (`exclusive=False`).
    With `apart` batches are written by a process of its own, which is the only one that writes while it does.
    """

    def __init__(self, url: str, clock: Clock, *, exclusive: bool = True, apart: bool = False) -> None:
        super().__init__(clock)
        self.path = sqlite_path(url)
        self._exclusive = exclusive
        self._has_process = apart
        self._apart: SqliteProcess | None = None
        self._lock_file: int | None = None
        log_pages = LOG_PAGES_BESIDE if apart else LOG_PAGES
        self._writer = SqliteWriter(lambda: Transactions(open_engine(self.path, log_pages)))
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

    @property
    def writing_process(self) -> int | None:
        """The process that writes the batches, if it is not this one."""
        return None if self._apart is None else self._apart.pid

    def now_ms(self) -> int:
        """The monotonic clock, set to the host's wall clock when the database was made."""
        return int(self._clock_origin_ms + self.clock.monotonic() * 1000)

    async def write_batch(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        if self._apart is None:
            return await self.write(work, *args, **kwargs)
        try:
            answer: Answer = await self._apart.run(work, *args, **kwargs)
        except (DBAPIError, sqlite3.Error) as error:
            self._tell_unusable(error)
            raise
        return answer

    async def write(
        self,
        work: Callable[Concatenate[Connection, Arguments], Answer],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Answer:
        def transaction(connection: Connection) -> Answer:
            return work(connection, *args, **kwargs)

        try:
            if self._apart is None:
                answer: Answer = await self._writer.run(transaction)
            else:
                answer = await self._apart.without(lambda: self._writer.run(transaction))
        except (DBAPIError, sqlite3.Error) as error:
            self._tell_unusable(error)
            raise
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
            self._tell_unusable(error)
            raise

    def _tell_unusable(self, error: DBAPIError | sqlite3.Error) -> None:
        """Raise it as what an operator understands, if it means that nothing can be done at the moment."""
        # A malformed file has no class of its own.
        cause = getattr(error, "orig", error)
        if isinstance(cause, sqlite3.OperationalError) or type(cause) is sqlite3.DatabaseError:
            raise DatabaseUnusableError(str(self.path), cause_of(error)) from error

    async def on_start(self) -> None:
        found = sqlite3.sqlite_version_info
        if found < _OLDEST_LIBRARY:
            library, oldest = (".".join(map(str, each)) for each in (found, _OLDEST_LIBRARY))
            reason = f"this Python's SQLite library is {library}, and {oldest} is the oldest that will do"
            raise DatabaseUnusableError(str(self.path), f"{reason}: use a newer Python, or a database server")
        if self._exclusive:
            self._lock_file = await self._take_lock()
        loop = asyncio.get_running_loop()
        await self._writer.start()
        if self._has_process:
            self._apart = SqliteProcess(self.path, self._lock_file)
            await self._apart.start()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="jobwheel-reader")
        for _ in range(_READERS):
            await loop.run_in_executor(self._readers, self._open_reader)

    def _open_reader(self) -> None:
        # Put here: a start that is broken off meanwhile closes it nevertheless.
        self._reading.put(Transactions(open_reader(self.path)))

    async def _take_lock(self) -> int:
        """Take the lock; of an admin that was killed the writing process may hold it for a moment longer."""
        until_s = self.clock.monotonic() + _HEIR_WAIT_S
        while True:
            try:
                return _lock(self.path)
            except DatabaseInUseError as error:
                if error.holder is None or _lives(error.holder) or self.clock.monotonic() >= until_s:
                    raise
            await self.clock.wait(0.02)

    async def on_stop(self) -> None:
        if self._apart is not None:
            await self._apart.stop()
            self._apart = None
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


def _lock(path: Path) -> int:
    """Take the lock that proves that no other admin runs on this file. It goes with the process, however it ends."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DatabaseUnusableError(str(path), cause_of(error)) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 32).strip()
        os.close(handle)
        raise DatabaseInUseError(str(path), int(holder) if holder.isdigit() else None) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        # Another user's.
        pass
    return True
