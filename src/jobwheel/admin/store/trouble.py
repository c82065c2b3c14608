"""What an error of a database means: whose fault it is, and whether to try again."""

import sqlite3
from enum import Enum, auto

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from jobwheel.admin.store.errors import (
    DatabaseAwayError,
    DatabaseSilentError,
    DatabaseUnusableError,
    UnknownCommitError,
)


class Trouble(Enum):
    """What a server's error asks for."""

    CONFLICT = auto()
    """Two transactions were in each other's way: again, soon and often."""
    LOST = auto()
    """The connection is gone, or cannot be made: again, later and seldom."""
    OUTAGE = auto()
    """The server cannot do it at the moment (full, read-only, rights taken away, silent): whoever asked tries again,
    much later."""


# Deadlock, serialization failure, lock time-out; a plan that a change of the schema made invalid.
_CONFLICTS: frozenset[str | int] = frozenset({"40001", "40P01", "55P03", "0A000", 1205, 1213})
# Shutting down, starting up, killed; the client's own "lost" and "cannot connect".
_LOST: frozenset[str | int] = frozenset(
    {"57P01", "57P02", "57P03", "57P05", "25P03", "53300"}
    | {1040, 1053, 1077, 1152, 1158, 1159, 1160, 1161, 1203, 1927, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
)
_REFUSALS: frozenset[str | int] = frozenset({"42501", 1044, 1142, 1143, 1227})
# Disk or memory full, table full, read-only; a search_path without a schema; too few rights, which no row is to blame
# for, and which come back.
_OUTAGES: frozenset[str | int] = frozenset(
    {"25006", "3F000", 1021, 1030, 1036, 1037, 1041, 1114, 1226, 1290, 1792, 1836, *_REFUSALS}
)
# 08 connection, 53 resources, 58 system.
_LOST_CLASS = "08"
_OUTAGE_CLASSES = ("53", "58")


def code_of(error: BaseException) -> str | int | None:
    """PostgreSQL's SQLSTATE or MySQL's error number; None if the error has neither."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    first = cause.args[0] if cause.args else None
    # MySQL's errors have a state as well, which says less. One of the operating system has its number at this place.
    if isinstance(first, int) and not isinstance(cause, OSError):
        return first
    state = getattr(cause, "sqlstate", None)
    return state if isinstance(state, str) else None


def trouble_of(error: BaseException) -> Trouble | None:
    """What a server's error asks for; None if the statement or its values are to blame."""
    code = code_of(error)
    if code in _CONFLICTS:
        return Trouble.CONFLICT
    if _is_lost(error, code):
        return Trouble.LOST
    if isinstance(error, DatabaseSilentError | DatabaseUnusableError):
        return Trouble.OUTAGE
    if code in _OUTAGES or (isinstance(code, str) and code.startswith(_OUTAGE_CLASSES)):
        return Trouble.OUTAGE
    return None


def _is_lost(error: BaseException, code: str | int | None) -> bool:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    if isinstance(error, DatabaseAwayError | PoolTimeoutError):
        return True
    return code in _LOST or (isinstance(code, str) and code.startswith(_LOST_CLASS))


def is_refusal(error: BaseException) -> bool:
    """Whether a server's user has too few rights for a statement."""
    return code_of(error) in _REFUSALS


def is_outage(error: Exception) -> bool:
    """Whether an error is the database's and no row's: locked, full, unreadable, away."""
    if isinstance(error, UnknownCommitError) or trouble_of(error) is not None:
        return True
    # SQLite's hot statements run on the driver's own cursor, so its errors come as they are.
    if isinstance(error, sqlite3.OperationalError):
        return True
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    return isinstance(error.orig, sqlite3.OperationalError)


def reason_of(error: Exception) -> str:
    """What a database said, in its own words, without the statement and its values."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return " ".join(str(cause).split()) or type(cause).__name__
