"""Rows into and out of SQLite as one JSON text: one step of a statement for all of them."""

import contextlib
import functools
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, LargeBinary, Select, cast, func, select
from sqlalchemy.exc import OperationalError

from jobwheel.admin.store.sqlite_commits import dbapi_connection


def cursor_of(connection: Connection) -> sqlite3.Cursor:
    """The driver's own cursor."""
    cursor: sqlite3.Cursor = connection.connection.cursor()  # type: ignore[assignment]
    return cursor


def as_json(rows: object) -> str:
    return msgspec.json.encode(rows).decode()


def found_by(cursor: sqlite3.Cursor, statement: str, parameters: tuple[Any, ...]) -> Any:
    """The one JSON text that a statement gives."""
    return msgspec.json.decode(cursor.execute(statement, parameters).fetchone()[0])


@functools.cache
def insert_of(columns: tuple[str, ...]) -> str:
    """The statement that writes pending runs: the first one's id, and rows of these columns as one text."""
    values = ", ".join(f"json_extract(value, '$[{at}]')" for at in range(len(columns)))
    return (
        f"INSERT INTO xxl_job_log (id, {', '.join(columns)}, phase) "  # noqa: S608 - the columns are the program's
        f"SELECT ? + key, {values}, 'pending' FROM json_each(?)"
    )


def all_rows(connection: Connection, query: Select[Any], parameters: Mapping[str, object]) -> Sequence[Sequence[Any]]:
    """The rows of a query that is made once; lists among the parameters become JSON texts.

    A text that is not UTF-8 comes as bytes.
    """
    given = {name: as_json(value) if isinstance(value, list) else value for name, value in parameters.items()}
    try:
        rows: list[list[Any]] = msgspec.json.decode(connection.execute(_as_one_text(query), given).scalar_one())
    except (OperationalError, msgspec.DecodeError, UnicodeDecodeError):
        # A value that JSON cannot hold, which SQLite lets a column have: row by row each is as it is.
        with _texts_as_they_are(connection):
            return connection.execute(query, given).all()
    return rows


@contextlib.contextmanager
def _texts_as_they_are(connection: Connection) -> Iterator[None]:
    driver = dbapi_connection(connection)
    usual, driver.text_factory = driver.text_factory, _text_or_bytes
    try:
        yield
    finally:
        driver.text_factory = usual


def _text_or_bytes(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


@functools.cache
def _as_one_text(query: Select[Any]) -> Select[Any]:
    rows = query.subquery()
    # Bytes: made into a text by the driver, what is not UTF-8 would look as if it were.
    return select(cast(func.json_group_array(func.json_array(*rows.c)), LargeBinary))
