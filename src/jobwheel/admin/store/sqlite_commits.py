"""Writes that share a commit, whichever thread or process makes them."""

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast

from sqlalchemy import Connection

MOST_IN_ONE_COMMIT: Final = 32

_REMOVED: Final = "jobwheel_removed"
_WEIGHT: Final = 10


@dataclass(slots=True)
class Work:
    """One transaction that somebody waits for, and what came of it."""

    run: Callable[[Connection], Any]
    answer: Any = None
    error: BaseException | None = None


class Transactions(Protocol):
    """Runs functions on a connection, each in one transaction."""

    def run(self, work: Callable[[Connection], None]) -> None: ...

    def note(self, error: BaseException) -> None: ...

    def close(self) -> None: ...


def commit(database: Transactions, works: Sequence[Work]) -> None:
    """Run them in one transaction, since a commit costs an fsync, whatever is in it.

    Each is a savepoint of its own: if one fails, it alone is undone. What came of each stands in it.
    """
    try:
        database.run(lambda connection: _run_all(connection, works))
        for error in [work.error for work in works if work.error is not None]:
            database.note(error)
    except Exception as error:  # noqa: BLE001 - whoever waits is told; the next commit may work
        for work in works:
            work.error = work.error or error


def dbapi_connection(connection: Connection) -> sqlite3.Connection:
    """The driver's own connection: what begins and ends each transaction is not worth SQLAlchemy's way there."""
    return cast("sqlite3.Connection", connection.connection.dbapi_connection)


def note_removed(connection: Connection, rows: int) -> None:
    """Old runs were removed: each leaves a page of each index, where new ones share theirs."""
    connection.info[_REMOVED] = connection.info.get(_REMOVED, 0) + rows


def changes_of(connection: Connection) -> int:
    """How many rows a connection has changed since it was opened; an old run that was removed counts as ten."""
    removed: int = connection.info.get(_REMOVED, 0)
    return dbapi_connection(connection).total_changes + (_WEIGHT - 1) * removed


def _run_all(connection: Connection, works: Sequence[Work]) -> None:
    if len(works) == 1:
        works[0].error = None
        works[0].answer = works[0].run(connection)
        return
    execute = dbapi_connection(connection).execute
    for work in works:
        work.error = None
        execute("SAVEPOINT shared")
        try:
            work.answer = work.run(connection)
        except Exception as error:  # noqa: BLE001 - this one is undone and told; the others go on
            work.error = error
            execute("ROLLBACK TO shared")
        execute("RELEASE shared")
