"""Why a server cannot be used, in words for the operator."""

from collections.abc import Mapping

from sqlalchemy.engine import URL
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from jobwheel.admin.store.trouble import code_of

_NOT_REACHED = frozenset({2002, 2003})
_TLS_WORDS = ("ssl", "tls", "certificate")
_READ_ONLY = "it can only be read, and Jobwheel writes: name the primary server, or end its read-only mode"
_FULL = "its disk is full: make room"
_NO_SCHEMA = "the search_path of {user!r} names no schema that is there: make one, or set another search_path"
_NO_CONNECTION = "the server has no free connection: raise its max_connections or lower JOBWHEEL_DATABASE_CONNECTIONS"
_NO_DATABASE = "there is no database {name!r}: create it, empty, and start again"
_POSTGRESQL_RIGHTS = (
    "{user!r} has too few rights; it needs SELECT, INSERT, UPDATE and DELETE on Jobwheel's tables, USAGE on their "
    "sequences, and CREATE on the schema for the first start and for upgrades"
)
_MYSQL_RIGHTS = "{user!r} has too few rights on {name!r}; it needs ALL PRIVILEGES on it"
_WORDS: Mapping[str | int, str] = {
    "28P01": "the password of {user!r} is wrong, or there is no such user",
    "28000": "the server does not let {user!r} in from here (pg_hba.conf says who may)",
    "3D000": _NO_DATABASE,
    "3F000": _NO_SCHEMA,
    "25006": _READ_ONLY,
    "42501": _POSTGRESQL_RIGHTS,
    "53100": _FULL,
    "53300": _NO_CONNECTION,
    "57P03": "the server is starting or stopping: try again",
    1021: _FULL,
    1040: _NO_CONNECTION,
    1044: "{user!r} has no rights on the database {name!r}",
    1045: "the password of {user!r} is wrong, or it may not come from here",
    1049: _NO_DATABASE,
    1114: _FULL,
    1142: _MYSQL_RIGHTS,
    1143: _MYSQL_RIGHTS,
    1227: _MYSQL_RIGHTS,
    1290: _READ_ONLY,
    1698: "the server does not let {user!r} in with a password",
    1792: _READ_ONLY,
    1836: _READ_ONLY,
}


def reason_of(error: BaseException, url: URL) -> str:
    """What is wrong and what to do. The password is in none of it."""
    said = _said(error)
    words = _WORDS.get(code_of(error) or 0)
    if words is not None:
        return f"{words.format(user=url.username or '', name=url.database or '')} ({said})"
    mode = url.query.get("sslmode", "disable")
    if mode != "disable" and any(word in said.lower() for word in _TLS_WORDS):
        return (
            f"a TLS connection as sslmode={mode} wants it cannot be made: the server speaks no TLS, or its certificate "
            f"is not one that this host trusts ({said})"
        )
    if isinstance(error, PoolTimeoutError):
        return "all of its connections are in use; raise JOBWHEEL_DATABASE_CONNECTIONS if that lasts"
    if isinstance(_cause(error), OSError) or code_of(error) in _NOT_REACHED:
        return f"{said}; is it running, and are its host and port right?"
    return said


def _cause(error: BaseException) -> BaseException:
    return getattr(error, "orig", None) or error.__cause__ or error


def _said(error: BaseException) -> str:
    cause = _cause(error)
    text = str(cause.args[-1]) if cause.args else type(cause).__name__
    return text.partition("\n")[0].removeprefix("<class ")
