"""The thread that writes to an SQLite database, and how many writes share one commit."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from jobwheel.admin.store.sqlite_commits import MOST_IN_ONE_COMMIT, Transactions, Work, commit
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


@dataclass(slots=True)
class _Waiting(Work):
    """Work whose end a task of a loop waits for."""

    done: "asyncio.Future[Any]" = field(kw_only=True)
    loop: asyncio.AbstractEventLoop = field(kw_only=True)


class SqliteWriter:
    """Runs transactions one after the other; those that wait together share a commit.

    A commit costs an fsync, whatever is in it. Each transaction of a shared one is a savepoint of its own: if one
    fails, it alone is undone. None is reported done before the commit.

    Args:
        open_database: opens the connection; called in the thread.
    """

    def __init__(self, open_database: Callable[[], Transactions]) -> None:
        self._open_database = open_database
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ended = asyncio.Event()

    async def start(self) -> None:
        """Open the database in the thread.

        Raises:
            DatabaseUnusableError: it cannot be opened or written.
        """
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[None] = loop.create_future()
        # A new one: a start that failed has left its end mark in the old one.
        self._queue = queue.SimpleQueue()
        self._ended = asyncio.Event()
        arguments = (loop, opened, self._ended)
        self._thread = threading.Thread(target=self._main, args=arguments, name="jobwheel-writer", daemon=True)
        self._thread.start()
        try:
            await opened
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Finish what waits, close the database, end the thread."""
        # Forgotten first: work that came behind the end mark would never be done, and whoever waits for it hang.
        thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            # Not in a thread of the loop's pool: a name server that hangs may have all of them.
            await self._ended.wait()
            thread.join()

    async def run(self, work: Callable[[Connection], Any]) -> Any:
        """Run `work` in a transaction; return its answer once it is committed."""
        assert self._thread is not None, "the database is not started"
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_Waiting(work, done=done, loop=loop))
        return await done

    def _main(self, loop: asyncio.AbstractEventLoop, opened: "asyncio.Future[None]", ended: asyncio.Event) -> None:
        try:
            self._write_all(loop, opened)
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(ended.set)

    def _write_all(self, loop: asyncio.AbstractEventLoop, opened: "asyncio.Future[None]") -> None:
        try:
            database = self._open_database()
        except Exception as error:  # noqa: BLE001 - whoever starts the database is told
            loop.call_soon_threadsafe(_resolve, opened, None, error)
            return
        loop.call_soon_threadsafe(_resolve, opened, None, None)
        try:
            while self._next_commit(database):
                pass
        finally:
            database.close()

    def _next_commit(self, database: Transactions) -> bool:
        works, more = self._take()
        if works:
            commit(database, works)
            _report(works)
        return more

    def _take(self) -> tuple[list[_Waiting], bool]:
        works: list[_Waiting] = []
        work = self._queue.get()
        while work is not None:
            works.append(work)
            if len(works) == MOST_IN_ONE_COMMIT:
                return works, True
            try:
                work = self._queue.get_nowait()
            except queue.Empty:
                return works, True
        return works, False


def _report(works: Sequence[_Waiting]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
    for work in works:
        by_loop.setdefault(work.loop, []).append(work)
    for loop, theirs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve_all, theirs)
        except RuntimeError:
            # The loop is closed: nobody waits any more. What was committed is committed.
            log.debug("database.nobody_waits", transactions=len(theirs))


def _resolve_all(works: Sequence[_Waiting]) -> None:
    for work in works:
        _resolve(work.done, work.answer, work.error)


def _resolve(done: "asyncio.Future[Any]", answer: object, error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(answer)
    else:
        done.set_exception(error)
