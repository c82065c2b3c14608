"""How late and how long a job's runs were, by day: histograms that are made by the database and added up here."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, case, delete, func, literal_column, not_, select

from jobwheel.admin.domain.histogram import BOUNDS, Histogram
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.report import NO_JOB, RunStatistics
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.reports import settle_slices
from jobwheel.admin.store.run_counts import RUNNING, in_time
from jobwheel.admin.store.tables import job_day, job_log

_LATENESS: Final = "(sent_ms - COALESCE(due_ms, planned_ms))"
# Of runs whose executor said how they ended: what was killed or lost took as long as it took to find that out.
_DURATION: Final = (
    "CASE WHEN trigger_code = 200 AND outcome IN ('succeeded', 'failed', 'timed_out') "
    "THEN ended_ms - COALESCE(started_ms, sent_ms) END"
)
_ALL: Final = 2**63 - 1


def _bucket(value: str, first: int = 0, last: int = len(BOUNDS)) -> str:
    """SQL for the bucket of a value, which is found like in a sorted list."""
    if first == last:
        return str(first)
    middle = (first + last) // 2
    below, above = _bucket(value, first, middle), _bucket(value, middle + 1, last)
    return f"CASE WHEN {value} < {BOUNDS[middle]} THEN {below} ELSE {above} END"


def _bucket_column(value: str) -> Any:
    return literal_column(f"CASE WHEN {value} IS NOT NULL THEN {_bucket(value)} END")


_OUTCOME: Final = func.coalesce(
    job_log.c.outcome, case((job_log.c.handle_code == 200, "succeeded"), else_="failed")
).label("ended_as")


def runs_statistics(
    connection: Connection, from_wall: datetime, until_wall: datetime, job_id: JobId | None = None
) -> dict[JobId, RunStatistics]:
    """Look at the runs triggered in a stretch of wall time that have ended: of all jobs that ran, or of one.

    What it holds depends on how many jobs ran and how different their runs were, not on how many runs there are.
    """
    found: dict[JobId, RunStatistics] = {}
    for job, group, outcome, late, long, runs, latest_ms, longest_ms in connection.execute(
        _grouped(connection, from_wall, until_wall, job_id)
    ):
        statistics = found.get(job)
        if statistics is None:
            statistics = found[JobId(job)] = RunStatistics(GroupId(group))
        statistics.outcomes[outcome] = statistics.outcomes.get(outcome, 0) + runs
        if late is not None:
            statistics.lateness.add(late, runs, max(0, latest_ms))
        if long is not None:
            statistics.duration.add(long, runs, max(0, longest_ms))
    return found


def _grouped(connection: Connection, from_wall: datetime, until_wall: datetime, job_id: JobId | None) -> Select[Any]:
    """Counts the runs by job, outcome and buckets, and finds the largest values of each."""
    runs = select(
        job_log.c.job_id,
        job_log.c.job_group,
        _OUTCOME,
        literal_column(_LATENESS).label("late_ms"),
        literal_column(_DURATION).label("long_ms"),
    ).where(in_time(from_wall, until_wall), not_(RUNNING))
    if job_id is not None:
        runs = runs.where(job_log.c.job_id == job_id)
    runs = statements(connection).by_index(runs, job_log, "i_trigger_time")
    # With a limit it stays a query of its own. SQLite would put the values' expressions wherever they are named, two
    # hundred times; each `IN` of theirs is a table then, which took five megabytes and half of the time.
    each = runs.limit(_ALL).subquery("ended")
    return select(
        each.c.job_id,
        func.max(each.c.job_group),
        each.c.ended_as,
        _bucket_column("late_ms").label("late_bucket"),
        _bucket_column("long_ms").label("long_bucket"),
        func.count(),
        func.max(each.c.late_ms),
        func.max(each.c.long_ms),
    ).group_by(each.c.job_id, each.c.ended_as, "late_bucket", "long_bucket")


def settle_with_statistics(
    connection: Connection,
    begins: Sequence[datetime],
    statistics: Mapping[JobId, RunStatistics],
    after: JobId = NO_JOB,
    until: JobId | None = None,
) -> bool:
    """Settle slices of a day for the jobs after one, until another or to the end, and add their runs to it, once.

    False, and nothing is done, if one is settled for others than the jobs until `after`.
    """
    # It holds a lock: of two nodes that add to one row the second one sees what the first one made of it.
    if not settle_slices(connection, begins, after, until):
        return False
    day = begins[0].date()
    stored = _stored(connection, day, sorted(statistics))
    rows = []
    for job_id, new in sorted(statistics.items()):
        # What was given stays as it is: after a conflict with another transaction it is given again.
        both = RunStatistics(new.group_id)
        both.merge(new)
        if job_id in stored:
            both.merge(stored[job_id])
        rows.append(
            {
                "job_id": job_id,
                "day": day.isoformat(),
                "job_group": both.group_id,
                "outcomes": json.dumps(both.outcomes),
                "lateness": both.lateness.to_text(),
                "durations": both.duration.to_text(),
            }
        )
    statements(connection).upsert_all(connection, job_day, ["job_id", "day"], rows)
    return True


def load_statistics(connection: Connection, job_id: JobId, first: date, last: date) -> dict[date, RunStatistics]:
    """What is stored of a job's days, from the first to the last one."""
    days = job_day.c.day.between(first.isoformat(), last.isoformat())
    rows = connection.execute(select(job_day).where(job_day.c.job_id == job_id, days))
    return {date.fromisoformat(row.day): _statistics(row) for row in rows}


def delete_statistics(connection: Connection, before: date, most: int) -> int:
    """Remove some of the days before one; says how many rows."""
    chosen = select(job_day.c.job_id, job_day.c.day).where(job_day.c.day < before.isoformat()).limit(most)
    keys = connection.execute(chosen).all()
    for job_id, day in sorted(keys):
        connection.execute(delete(job_day).where(job_day.c.job_id == job_id, job_day.c.day == day))
    return len(keys)


def _stored(connection: Connection, day: date, job_ids: Iterable[JobId]) -> dict[JobId, RunStatistics]:
    ids = list(job_ids)
    found = {}
    for first in range(0, len(ids), 500):
        some = job_day.c.job_id.in_(ids[first : first + 500])
        for row in connection.execute(select(job_day).where(some, job_day.c.day == day.isoformat())):
            found[JobId(row.job_id)] = _statistics(row)
    return found


def _statistics(row: Row[tuple[object, ...]]) -> RunStatistics:
    return RunStatistics(
        GroupId(row.job_group),
        json.loads(row.outcomes),
        Histogram.from_text(row.lateness),
        Histogram.from_text(row.durations),
    )
