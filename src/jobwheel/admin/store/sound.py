"""Rows whose values are not what their columns say: SQLite keeps any value in any column.

Such a row must cost its job alone. Whoever reads many rows gets each as one that can be worked with, and is told of
those that were mended.
"""

import functools
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Column, ColumnElement, DateTime, Integer, Row, func

_Kind = tuple[type, bool]
"""What a column holds, and whether it may be NULL."""

_MOST_SHOWN = 60


class SoundRows:
    """Looks at rows of a query that has these columns, in this order."""

    def __init__(self, *columns: Column[Any]) -> None:
        self._names = tuple(column.name for column in columns)
        self._kinds = tuple(_kind(column) for column in columns)

    def mended(self, row: Sequence[Any]) -> tuple[Sequence[Any], str | None]:
        """The row, and None; with stand-ins for what its columns do not hold, and what that was, if there is such.

        A text that is not UTF-8 comes as bytes.
        """
        wrong = _wrong(self._kinds, tuple(map(type, row)))
        if not wrong:
            return row, None
        mended = list(row)
        for at in wrong:
            mended[at] = _stand_in(row[at], *self._kinds[at])
        told = (
            f"{self._names[at]} holds {_shown(row[at])}, which is {_other_than(self._kinds[at][0])}" for at in wrong
        )
        return mended, "; ".join(told)

    def named(self, row: Row[*tuple[Any, ...]]) -> Any:
        """The row, mended if it must be, with the columns' names as attributes."""
        mended, damage = self.mended(row)
        return row if damage is None else SimpleNamespace(**dict(zip(self._names, mended, strict=True)))


@functools.cache
def _wrong(kinds: tuple[_Kind, ...], found: tuple[type, ...]) -> tuple[int, ...]:
    """Where a row has other types. Rows have few shapes, so that the most of them cost one look-up."""
    return tuple(
        at
        for at, ((kind, nullable), each) in enumerate(zip(kinds, found, strict=True))
        if each is not kind and not (nullable and each is type(None))
    )


def with_values(columns: Iterable[Column[Any]], defaults: Mapping[str, str]) -> list[ColumnElement[Any]]:
    """The columns as they are selected, some with a value where they have none."""
    return [
        func.coalesce(column, defaults[column.name]).label(column.name) if column.name in defaults else column
        for column in columns
    ]


def _kind(column: Column[Any]) -> _Kind:
    if isinstance(column.type, DateTime):
        return datetime, bool(column.nullable)
    return (int if isinstance(column.type, Integer) else str), bool(column.nullable)


def _stand_in(value: object, kind: type, nullable: bool) -> object:  # noqa: FBT001 - what a kind consists of
    if kind is not str:
        return None if nullable else 0
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _shown(value: object) -> str:
    shown = "NULL" if value is None else repr(value[:_MOST_SHOWN] if isinstance(value, str | bytes) else value)
    return shown if len(shown) <= 4 * _MOST_SHOWN else f"{shown[: 4 * _MOST_SHOWN]}…"


def _other_than(kind: type) -> str:
    return {int: "no whole number", str: "no text"}.get(kind, "no time")
