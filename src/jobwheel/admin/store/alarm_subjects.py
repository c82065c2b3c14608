"""What alarms tell of the jobs, the groups and the runs that they are about."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, select

from jobwheel.admin.domain.alarm import MOST_WORDS, JobAlarms
from jobwheel.admin.store.job_alarms import read_alarms
from jobwheel.admin.store.tables import job_group, job_info, job_log


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job, to its people; `time_zone` None is the installation's."""

    name: str
    owner: str
    emails: str
    time_zone: str | None
    alarms: JobAlarms


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run, to the job's people."""

    planned_ms: int | None
    words: str


def read_jobs(connection: Connection, ids: Iterable[int]) -> Mapping[int, JobFacts]:
    """The jobs that are there, by id."""
    columns = (
        *(job_info.c.id, job_info.c.job_desc, job_info.c.author, job_info.c.alarm_email),
        *(job_info.c.time_zone, job_info.c.alarm_settings),
    )
    rows = connection.execute(select(*columns).where(job_info.c.id.in_(list(ids))))
    return {
        row.id: JobFacts(
            row.job_desc, row.author or "", row.alarm_email or "", row.time_zone, read_alarms(row.alarm_settings)
        )
        for row in rows
    }


def read_group_names(connection: Connection, ids: Iterable[int]) -> Mapping[int, str]:
    """The app names of the groups that are there, by id."""
    rows = connection.execute(select(job_group.c.id, job_group.c.app_name).where(job_group.c.id.in_(list(ids))))
    return {row.id: row.app_name for row in rows}


def read_runs(connection: Connection, ids: Iterable[int]) -> Mapping[int, RunFacts]:
    """The runs that are there, by id, with what is to be said of each: its result's message, else how it was sent."""
    columns = (job_log.c.id, job_log.c.planned_ms, job_log.c.handle_msg, job_log.c.trigger_msg)
    rows = connection.execute(select(*columns).where(job_log.c.id.in_(list(ids))))
    return {row.id: RunFacts(row.planned_ms, _words(row.handle_msg, row.trigger_msg)) for row in rows}


def _words(handle_message: str | None, trigger_message: str | None) -> str:
    result = _lines(handle_message)
    if result:
        return result if len(result) <= MOST_WORDS else f"{result[: MOST_WORDS - 1]}…"
    # Its end says how it came out.
    sent = _lines(trigger_message)
    return sent if len(sent) <= MOST_WORDS else f"…{sent[1 - MOST_WORDS :]}"


def _lines(text: str | None) -> str:
    # Java executors break lines by tags.
    return (text or "").replace("<br>", "\n").strip()
