"""What a database intends to do for a query, in the same words for each kind."""

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, event

_ROWS_AT_ONCE = 500


@dataclass
class Seen:
    """What a function of the store did: the plans of its statements, and how long it took at best."""

    plan: list[str]
    took_s: float
    rows: object

    def uses(self, index: str) -> bool:
        return any(re.search(rf"\b{index}\b", line) for line in self.plan)

    @property
    def scans(self) -> list[str]:
        """Steps that read a large table, or an index of it, from end to end."""
        return [line for line in self.plan if re.match(r"\W*(SCAN|Seq Scan on|(\w+ )?(ALL|index) of) xxl_job_", line)]

    @property
    def sorts(self) -> list[str]:
        """Steps that bring rows into an order that no index has."""
        return [line for line in self.plan if re.search(r"TEMP B-TREE|^\W*(Incremental )?Sort |filesort", line)]


class SeenError(Exception):
    """Ends a transaction, so that nothing of it stays, with what was seen in it."""

    def __init__(self, seen: Seen) -> None:
        super().__init__("seen")
        self.seen = seen


def look(connection: Connection, work: Callable[..., object], args: Sequence[object]) -> None:
    """Run a function of the store three times and explain its statements.

    Raises:
        SeenError: always.
    """
    with _noted(connection) as statements:
        took_s, rows = min((_timed(work, connection, args) for _ in range(3)), key=lambda timed: timed[0])
    explain = _EXPLAIN[connection.dialect.name]
    plan = [line for statement, parameters in statements.items() for line in explain(connection, statement, parameters)]
    raise SeenError(Seen(plan, took_s, rows))


@contextlib.contextmanager
def _noted(connection: Connection) -> Iterator[dict[str, Any]]:
    """The statements that are run inside, with their parameters."""
    statements: dict[str, Any] = {}

    def note(*call: Any) -> None:
        _, _, statement, parameters, _, many = call
        statements[statement] = parameters[0] if many else parameters

    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        # The hot statements go to the driver itself.
        driver.set_trace_callback(lambda statement: statements.update({statement: ()}))
        yield statements
        driver.set_trace_callback(None)
    else:
        event.listen(connection, "before_cursor_execute", note)
        yield statements
        event.remove(connection, "before_cursor_execute", note)


def _timed(work: Callable[..., object], connection: Connection, args: Sequence[object]) -> tuple[float, object]:
    began_s = time.perf_counter()
    rows = work(connection, *args)
    return time.perf_counter() - began_s, rows


def _sqlite(connection: Connection, statement: str, parameters: Any) -> list[str]:
    return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]


def _postgresql(connection: Connection, statement: str, parameters: Any) -> list[str]:
    return [row[0].strip() for row in connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)]


def _mysql(connection: Connection, statement: str, parameters: Any) -> list[str]:
    rows = connection.exec_driver_sql(f"EXPLAIN {statement}", parameters).mappings()
    parts = ("select_type", "type", "table", "key", "rows", "Extra")
    return ["{} {} of {} by {} {} {}".format(*(row[part] for part in parts)) for row in rows]


_EXPLAIN: dict[str, Callable[[Connection, str, Any], list[str]]] = {
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "mysql": _mysql,
}


def insert_many(connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows quickly, on whatever database."""
    for part in _parts(rows):
        style = connection.dialect.paramstyle
        statement = f"INSERT INTO {table} ({', '.join(columns)}) VALUES {_marks(style, len(columns), len(part))}"
        values: Iterable[Any] = (value for row in part for value in row)
        if style == "qmark":
            values = (str(value) if isinstance(value, datetime) else value for value in values)
        connection.exec_driver_sql(statement, tuple(values))


def _parts(rows: Sequence[tuple[Any, ...]]) -> Iterator[Sequence[tuple[Any, ...]]]:
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        yield rows[first : first + _ROWS_AT_ONCE]


def _marks(style: str, columns: int, rows: int) -> str:
    def mark(position: int) -> str:
        return {"qmark": "?", "format": "%s"}.get(style, f"${position + 1}")

    return ", ".join(f"({', '.join(mark(row * columns + column) for column in range(columns))})" for row in range(rows))


def analyze(connection: Connection) -> None:
    """Let a server see how its tables are filled, as it does by itself now and then; SQLite never does."""
    if connection.dialect.name == "mysql":
        connection.exec_driver_sql("ANALYZE TABLE xxl_job_log, xxl_job_info").all()
    elif connection.dialect.name == "postgresql":
        connection.exec_driver_sql("ANALYZE")
