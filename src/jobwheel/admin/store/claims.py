"""The claim's reading and writing: due jobs in, next times and pending runs out, under the schedule's lock row."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Integer, Select, bindparam, select

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import RouteStrategy
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import Move
from jobwheel.admin.store.pause_windows import read_windows
from jobwheel.admin.store.sound import SoundRows, with_values
from jobwheel.admin.store.tables import SCHEDULE_LOCK, job_info

# In the order of DueJob's fields, of which the last ones are found otherwise.
_DUE_COLUMNS = (
    job_info.c.id,
    job_info.c.job_group,
    job_info.c.schedule_type,
    job_info.c.schedule_conf,
    job_info.c.time_zone,
    job_info.c.anchor_ms,
    job_info.c.misfire_strategy,
    job_info.c.executor_param,
    job_info.c.trigger_next_time,
    job_info.c.valid_from_ms,
    job_info.c.valid_until_ms,
    job_info.c.executor_route_strategy,
    job_info.c.version,
)
_WITHOUT_VALUE = {"schedule_conf": "", "executor_param": "", "executor_route_strategy": RouteStrategy.FIRST.value}
_SOUND = SoundRows(*_DUE_COLUMNS)


# Made once: to make a statement costs more than to run it.
_ALL_DUE = select(*with_values(_DUE_COLUMNS, _WITHOUT_VALUE)).where(
    job_info.c.trigger_status == 1, job_info.c.trigger_next_time <= bindparam("horizon_ms")
)
_DUE = _ALL_DUE.order_by(job_info.c.trigger_next_time, job_info.c.id).limit(bindparam("most", type_=Integer))
_DUE_ONE = _ALL_DUE.where(job_info.c.id == bindparam("job_id"))


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
    return _read_due(connection, _DUE, {"horizon_ms": horizon_ms, "most": most})


def due_job(connection: Connection, job_id: JobId, horizon_ms: int) -> Sequence[DueJob]:
    """The job, if it is running and its next time is at or before the horizon; else nothing."""
    return _read_due(connection, _DUE_ONE, {"horizon_ms": horizon_ms, "job_id": job_id})


def _read_due(connection: Connection, query: Select[Any], parameters: Mapping[str, object]) -> Sequence[DueJob]:
    jobs = [_due_job(row) for row in statements(connection).all_rows(connection, query, parameters)]
    if not jobs:
        return []
    # Read after the job rows, so that what an edit has changed in both fits together. A window that ended before the
    # earliest next time holds nothing back any more.
    windows = read_windows(connection, [job.id for job in jobs], jobs[0].next_ms)
    if not windows:
        return jobs
    return [msgspec.structs.replace(job, pause_windows=windows.get(job.id, ())) for job in jobs]


def _due_job(row: Sequence[Any]) -> DueJob:
    sound, damage = _SOUND.mended(row)
    job = DueJob(*sound)
    return job if damage is None else msgspec.structs.replace(job, damage=damage)


def move_on(connection: Connection, moves: Sequence[Move]) -> set[JobId]:
    """Give jobs their next times; return those whose status, next time and version were still as read.

    An edit may leave the next time as it is, or give the same one under another schedule: the version tells. A number
    that is no whole one, which is nobody's, counts as read.
    """
    return statements(connection).move_on(connection, moves)
