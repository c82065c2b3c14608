"""The claim's reading and writing: due jobs in, next times and pending runs out, under the schedule's lock row."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import Connection, Integer, bindparam, func, select

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.pause_windows import read_windows
from jobwheel.admin.store.tables import SCHEDULE_LOCK, job_info

# In the order of DueJob's fields, of which the last one, the windows, comes from a table of its own.
_DUE_COLUMNS = (
    job_info.c.id,
    job_info.c.job_group,
    job_info.c.schedule_type,
    func.coalesce(job_info.c.schedule_conf, ""),
    job_info.c.time_zone,
    job_info.c.anchor_ms,
    job_info.c.misfire_strategy,
    func.coalesce(job_info.c.executor_param, ""),
    job_info.c.trigger_next_time,
    job_info.c.valid_from_ms,
    job_info.c.valid_until_ms,
    func.coalesce(job_info.c.executor_route_strategy, RouteStrategy.FIRST.value),
)


# Made once: to make a statement costs more than to run it.
_DUE = (
    select(*_DUE_COLUMNS)
    .where(job_info.c.trigger_status == 1, job_info.c.trigger_next_time <= bindparam("horizon_ms"))
    .order_by(job_info.c.trigger_next_time, job_info.c.id)
    .limit(bindparam("most", type_=Integer))
)


def lock_schedule(connection: Connection) -> None:
    """Hold the lock row that admins of either make honour until the transaction ends; make it if it is missing.

    Raises:
        ScheduleLockedError: somebody else holds it.
    """
    statements(connection).lock_schedule(connection)


def wait_for_schedule(connection: Connection) -> None:
    """The same, but wait for whoever holds it: for what happens once, at a start."""
    statements(connection).wait_for_lock(connection, SCHEDULE_LOCK)


def due_jobs(connection: Connection, horizon_ms: int, most: int) -> Sequence[DueJob]:
    """Running jobs whose next time is at or before the horizon, the earliest first."""
    rows = statements(connection).all_rows(connection, _DUE, {"horizon_ms": horizon_ms, "most": most})
    jobs = [DueJob(*row) for row in rows]
    if not jobs:
        return []
    # Read after the job rows, so that what an edit has changed in both fits together. A window that ended before the
    # earliest next time holds nothing back any more.
    windows = read_windows(connection, [job.id for job in jobs], jobs[0].next_ms)
    if not windows:
        return jobs
    return [msgspec.structs.replace(job, pause_windows=windows.get(job.id, ())) for job in jobs]


def move_on(connection: Connection, moves: Sequence[tuple[JobId, int, int | None, int, bool]]) -> set[JobId]:
    """Give jobs their next times; return those whose status and next time were still as read."""
    return statements(connection).move_on(connection, moves)
