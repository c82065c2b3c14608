"""Transactions on one connection to an SQLite database, and what its errors mean for the connection."""

import sqlite3
from collections.abc import Callable
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from jobwheel.admin.store.sqlite_commits import changes_of

Answer = TypeVar("Answer")

_CONFLICT_TRIES = 5


class Transactions:
    """An engine's one connection, and the transactions on it: one after the other, whichever thread comes.

    It is kept from one transaction to the next: to take it out of the pool and to put it back costs more than a small
    transaction does. One on which the database failed is closed, and the next transaction opens the file anew: what the
    old one has in its cache, or believes of its files, may be wrong for good.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Connection | None = engine.connect()

    def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """Run `work` in a transaction, again if another process (a tool, a backup) was in the way for long."""
        for _ in range(_CONFLICT_TRIES - 1):
            try:
                return self._run_once(work)
            except (OperationalError, sqlite3.OperationalError) as error:
                if not _is_busy(error):
                    raise
        return self._run_once(work)

    def note(self, error: BaseException) -> None:
        """A part of a transaction failed, which was committed without it all the same."""
        if _is_unsound_after(error):
            self._let_go(error)

    @property
    def changes(self) -> int:
        """How many rows the open connection has changed, see `changes_of`."""
        return 0 if self._connection is None else changes_of(self._connection)

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
        self._engine.dispose()

    def _run_once(self, work: Callable[[Connection], Answer]) -> Answer:
        if self._connection is None:
            self._connection = self._engine.connect()
        try:
            with self._connection.begin():
                return work(self._connection)
        except BaseException as error:
            self._let_go(error)
            raise

    def _let_go(self, error: BaseException) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if _is_unsound_after(error):
            connection.invalidate(error)
        # In whatever state SQLAlchemy has it: closing rolls the driver's back.
        connection.close()


def _is_unsound_after(error: BaseException) -> bool:
    """Whether an error says something of the connection, not of a row or of another process."""
    cause = getattr(error, "orig", error)
    return isinstance(cause, sqlite3.Error) and not isinstance(cause, sqlite3.IntegrityError) and not _is_busy(cause)


def _is_busy(error: OperationalError | sqlite3.Error) -> bool:
    code = getattr(getattr(error, "orig", error), "sqlite_errorcode", None)
    return code is not None and code & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
