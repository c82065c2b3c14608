"""Jobs whose runs pile up, behind one that hangs or since they come faster than they end: each told once."""

from typing import Final

import msgspec
from sqlalchemy import Connection, func, select

from jobwheel.admin.domain.alarm import AlarmKind, Notice
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Phase
from jobwheel.admin.store.alarm_outbox import note
from jobwheel.admin.store.alarm_states import delete_state, read_states, write_state
from jobwheel.admin.store.alarm_subjects import read_jobs
from jobwheel.admin.store.tables import alarm_watch, job_log

_TOLD: Final = "backlog"


class Told(msgspec.Struct, frozen=True):
    """It was told that the job's runs pile up; the oldest of them then."""

    run_id: int


class Backlogs(msgspec.Struct, frozen=True):
    """What is to be told, and the jobs of which it was told that have fewer open runs by now, or ask no more."""

    begun: list[Notice]
    ended: list[int]

    def __bool__(self) -> bool:
        return bool(self.begun or self.ended)


def look_for_backlogs(connection: Connection, now_ms: int) -> Backlogs:
    """Compare the open runs that are due with what their jobs allow, and with what was told."""
    told = read_states(connection, _TOLD, Told)
    crowded = {each.job_id: each for each in _crowded(connection, now_ms)}
    return Backlogs([each for each in crowded.values() if each.job_id not in told], [*(told.keys() - crowded.keys())])


def note_backlogs(connection: Connection, backlogs: Backlogs) -> None:
    """Note them; under `hold_alarms`, in the transaction that found them."""
    for each in backlogs.begun:
        write_state(connection, _TOLD, each.job_id or 0, Told(each.run_id or 0))
    for job_id in backlogs.ended:
        delete_state(connection, _TOLD, job_id)
    note(connection, backlogs.begun)


def _crowded(connection: Connection, now_ms: int) -> list[Notice]:
    """The jobs with more open runs than they allow; each with its oldest, which may be what the others wait for."""
    oldest, number = func.min(job_log.c.id), func.count()
    rows = connection.execute(
        select(job_log.c.job_id, func.min(job_log.c.job_group).label("group_id"), oldest, number)
        .select_from(alarm_watch.join(job_log, job_log.c.job_id == alarm_watch.c.job_id))
        # Each of the phases, so that the index of open runs is gone through and not the log of the job.
        .where(job_log.c.phase.in_([each.value for each in Phase]), job_log.c.due_ms <= now_ms)
        .group_by(job_log.c.job_id)
        .having(number > 1)
    ).all()
    jobs = read_jobs(connection, [row.job_id for row in rows]) if rows else {}
    found = []
    for job_id, group_id, run_id, open_runs in rows:
        most = jobs[job_id].alarms.most_open_runs if job_id in jobs else None
        if most is not None and open_runs > most:
            words = f"{open_runs} > {most}"
            found.append(
                Notice(AlarmKind.BACKLOG, now_ms, GroupId(group_id), JobId(job_id), RunId(run_id), words=words)
            )
    return found
