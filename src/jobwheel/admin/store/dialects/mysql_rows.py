"""Many rows in one statement of MySQL and MariaDB, as a derived table.

An UPDATE cannot say which rows it matched: they are locked by a SELECT with the same condition first. Rows are looked
up by their id and in the order of the ids (`FORCE INDEX`, `STRAIGHT_JOIN`): whatever else a plan would read, it would
lock. A batch is one packet, so a large one is cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from jobwheel.admin.domain.ids import JobId, RunId

Rows = Sequence[tuple[Any, ...]]

_MOST_ROWS = 1000
_MOST_CHARACTERS = 1_000_000
"""Of the texts in one statement: four bytes each at most, and a packet may have 16 MiB (MariaDB's default)."""

# 65,535 bytes fit a TEXT; what is appended again and again must not make a batch fail.
APPENDED = "LEFT(CONCAT(COALESCE(log.trigger_msg, ''), given.message), 16000)"
"""A run's dispatch message with what a write adds to it."""


def change(
    connection: Connection, condition: tuple[str, tuple[Any, ...]], changes: str, names: Sequence[str], rows: Rows
) -> dict[RunId, JobId]:
    """Change the runs of `rows` that meet a condition; return these with their jobs."""
    matched: dict[RunId, JobId] = {}
    for part in cut(rows):
        found = lock_runs(connection, [row[0] for row in part], *condition)
        update_runs(connection, changes, names, [row for row in part if row[0] in found])
        matched.update({run_id: run.job_id for run_id, run in found.items()})
    return matched


class LockedRun(NamedTuple):
    """What is read of a run that is held."""

    job_id: JobId
    group_id: int
    kill_ms: int | None
    outcome: str | None


def lock_runs(
    connection: Connection, run_ids: Sequence[RunId], condition: str, values: tuple[Any, ...]
) -> dict[RunId, LockedRun]:
    """Of these runs those that meet a condition, held, by id."""
    query = (
        "SELECT id, job_id, job_group, kill_ms, outcome FROM xxl_job_log FORCE INDEX (PRIMARY) "  # noqa: S608
        f"WHERE id IN {marks(run_ids)} AND {condition} ORDER BY id FOR UPDATE"
    )
    rows = connection.exec_driver_sql(query, (*run_ids, *values))
    return {RunId(run_id): LockedRun(*run) for run_id, *run in rows}


def update_runs(
    connection: Connection,
    changes: str,
    names: Sequence[str],
    rows: Rows,
    condition: tuple[str, tuple[Any, ...]] = ("TRUE", ()),
) -> None:
    """Change runs that are held, or those that meet a condition if nobody asks which."""
    for part in cut(rows):
        table, values = given(names, part)
        source = f"{table} STRAIGHT_JOIN xxl_job_log AS log FORCE INDEX (PRIMARY) ON log.id = given.id"
        connection.exec_driver_sql(f"UPDATE {source} SET {changes} WHERE {condition[0]}", (*values, *condition[1]))  # noqa: S608


def given(names: Sequence[str], rows: Rows) -> tuple[str, tuple[Any, ...]]:
    """The rows as a derived table."""
    first = ", ".join(f"%s AS {name}" for name in names)
    more = f" UNION ALL SELECT {', '.join(['%s'] * len(names))}" * (len(rows) - 1)
    return f"(SELECT {first}{more}) AS given", flat(rows)


def cut(rows: Rows) -> Iterator[Rows]:
    """The rows in parts that fit a packet."""
    part: list[tuple[Any, ...]] = []
    size = 0
    for row in rows:
        length = sum(len(value) for value in row if isinstance(value, str))
        if part and (len(part) == _MOST_ROWS or size + length > _MOST_CHARACTERS):
            yield part
            part, size = [], 0
        part.append(row)
        size += length
    if part:
        yield part


def flat(rows: Rows) -> tuple[Any, ...]:
    return tuple(value for row in rows for value in row)


def marks(values: Iterable[object]) -> str:
    return f"({', '.join('%s' for _ in values)})"
