"""Rows into and out of SQLite as one JSON text: one step of a statement for all of them."""

import functools
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from sqlalchemy import Connection, Select, func, select
from sqlalchemy.exc import OperationalError


def cursor_of(connection: Connection) -> sqlite3.Cursor:
    """The driver's own cursor."""
    return cast("sqlite3.Cursor", connection.connection.cursor())


def as_json(rows: object) -> str:
    return msgspec.json.encode(rows).decode()


def found_by(cursor: sqlite3.Cursor, statement: str, parameters: tuple[Any, ...]) -> Any:
    """The one JSON text that a statement gives."""
    return msgspec.json.decode(cursor.execute(statement, parameters).fetchone()[0])


def all_rows(connection: Connection, query: Select[Any], parameters: Mapping[str, object]) -> Sequence[Sequence[Any]]:
    """The rows of a query that is made once; lists among the parameters become JSON texts."""
    given = {name: as_json(value) if isinstance(value, list) else value for name, value in parameters.items()}
    try:
        text = connection.execute(_as_one_text(query), given).scalar_one()
        rows: list[list[Any]] = msgspec.json.decode(text)
    except (OperationalError, msgspec.DecodeError, UnicodeDecodeError):
        # A value that JSON cannot hold, which SQLite lets a column have: row by row each is as it is.
        return connection.execute(query, given).all()
    return rows


@functools.cache
def _as_one_text(query: Select[Any]) -> Select[Any]:
    rows = query.subquery()
    return select(func.json_group_array(func.json_array(*rows.c)))
