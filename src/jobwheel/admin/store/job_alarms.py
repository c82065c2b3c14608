"""What jobs ask to be told of: a column of the job, and the list of those whose open runs are watched."""

from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert

from jobwheel.admin.domain.alarm import AlarmFailures, JobAlarms
from jobwheel.admin.domain.ids import ChannelId, JobId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.tables import alarm_watch


class _Stored(msgspec.Struct, omit_defaults=True):
    """The column `alarm_settings`."""

    channels: list[int] = []
    failures: AlarmFailures = AlarmFailures.FINAL
    also: list[Outcome] = []
    success_after_failure: bool = False
    late_start_s: int | None = None
    long_run_s: int | None = None
    most_open_runs: int | None = None


def stored_alarms(alarms: JobAlarms) -> str | None:
    """The column's text; None for a job that asks for nothing special."""
    if alarms == JobAlarms():
        return None
    stored = _Stored(
        list(alarms.channel_ids),
        alarms.failures,
        list(alarms.also),
        alarms.success_after_failure,
        alarms.late_start_s,
        alarms.long_run_s,
        alarms.most_open_runs,
    )
    return msgspec.json.encode(stored).decode()


def read_alarms(text: Any) -> JobAlarms:
    """What a column's text means; nonsense that somebody wrote by hand must not hide the job, nor its failures."""
    if not text:
        return JobAlarms()
    try:
        stored = msgspec.json.decode(text, type=_Stored)
    except msgspec.MsgspecError:
        return JobAlarms()
    return JobAlarms(
        tuple(ChannelId(each) for each in stored.channels),
        stored.failures,
        tuple(stored.also),
        stored.success_after_failure,
        stored.late_start_s,
        stored.long_run_s,
        stored.most_open_runs,
    )


def write_watch(connection: Connection, job_id: JobId, alarms: JobAlarms, *, is_new: bool = False) -> None:
    """Watch the job's open runs, or do not any more. The job's row is held, or nobody knows it yet."""
    if not is_new:
        delete_watch(connection, job_id)
    if (alarms.late_start_s, alarms.long_run_s, alarms.most_open_runs) != (None, None, None):
        values = {"job_id": job_id, "late_start_s": alarms.late_start_s, "long_run_s": alarms.long_run_s}
        connection.execute(insert(alarm_watch).values(values))


def delete_watch(connection: Connection, job_id: JobId) -> None:
    """Watch the job's runs no more."""
    connection.execute(delete(alarm_watch).where(alarm_watch.c.job_id == job_id))
