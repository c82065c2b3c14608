"""Open runs that start late or run long, and jobs that succeed again: found by indexes, whatever the log's size."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, delete, exists, func, insert, select

from jobwheel.admin.domain.alarm import AlarmKind, Notice
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.alarm_outbox import note
from jobwheel.admin.store.alarm_states import delete_state, read_states, write_state
from jobwheel.admin.store.alarm_subjects import read_jobs
from jobwheel.admin.store.tables import alarm_noted, alarm_watch, job_log

_FAILING: Final = "job"
_LOOKED_AT: Final = 100
_SENT: Final = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)


class Failing(msgspec.Struct, frozen=True):
    """A job that wants to be told of its next success; the run that failed last."""

    run_id: int


def late_runs(connection: Connection, now_ms: int, most: int) -> list[Notice]:
    """Open runs that were accepted later than their job allows, or are not yet, and were not told of."""
    allowed_ms = alarm_watch.c.late_start_s * 1000
    started_ms = func.coalesce(job_log.c.accepted_ms, now_ms)
    late = and_(alarm_watch.c.late_start_s.is_not(None), started_ms - job_log.c.due_ms > allowed_ms)
    query = _open_runs(AlarmKind.LATE_START, tuple(Phase), late).limit(most)
    return [_notice(AlarmKind.LATE_START, row, row.late_start_s, now_ms) for row in connection.execute(query)]


def long_runs(connection: Connection, now_ms: int, most: int) -> list[Notice]:
    """Open runs that have been under way for longer than their job allows, and were not told of."""
    allowed_ms = alarm_watch.c.long_run_s * 1000
    since_ms = func.coalesce(job_log.c.accepted_ms, job_log.c.sent_ms)
    long = and_(alarm_watch.c.long_run_s.is_not(None), since_ms < now_ms - allowed_ms)
    query = _open_runs(AlarmKind.LONG_RUN, _SENT, long).limit(most)
    return [_notice(AlarmKind.LONG_RUN, row, row.long_run_s, now_ms) for row in connection.execute(query)]


def note_runs(connection: Connection, notices: list[Notice], now_ms: int) -> None:
    """Note open runs, once each; under `hold_alarms`, in the transaction that found them."""
    if notices:
        rows = [{"run_id": each.run_id, "kind": each.kind.value, "noted_ms": now_ms} for each in notices]
        connection.execute(insert(alarm_noted), rows)
        note(connection, notices)


def forget_noted(connection: Connection, before_ms: int) -> int:
    """Forget what was told of runs before a moment that are not open any more."""
    is_open = exists().where(job_log.c.id == alarm_noted.c.run_id, job_log.c.phase.is_not(None))
    return connection.execute(delete(alarm_noted).where(alarm_noted.c.noted_ms < before_ms, ~is_open)).rowcount


def note_failing(connection: Connection, failures: Mapping[JobId, RunId]) -> None:
    """Remember jobs that failed, so that their next success is told; under `hold_alarms`."""
    if not failures:
        return
    known = read_states(connection, _FAILING, Failing)
    for job_id, run_id in failures.items():
        if job_id not in known or known[job_id].run_id < run_id:
            write_state(connection, _FAILING, job_id, Failing(run_id))


def has_recovered(connection: Connection) -> bool:
    """Whether any job that failed has succeeded since, or asks no more."""
    return bool(_recovered(connection))


def note_recovered(connection: Connection) -> int:
    """Note the jobs that succeed again, once each; under `hold_alarms`. Returns how many."""
    found = _recovered(connection)
    for job_id in found:
        delete_state(connection, _FAILING, job_id)
    notices = [each for each in found.values() if each is not None]
    note(connection, notices)
    return len(notices)


def _recovered(connection: Connection) -> dict[int, Notice | None]:
    """The jobs whose state is over; None for one that is gone, or does not ask any more."""
    states = read_states(connection, _FAILING, Failing)
    if not states:
        return {}
    jobs = read_jobs(connection, states)
    found: dict[int, Notice | None] = {}
    for job_id, state in states.items():
        if job_id not in jobs or not jobs[job_id].alarms.success_after_failure:
            found[job_id] = None
            continue
        success = _success_after(connection, job_id, state.run_id)
        if success is not None:
            found[job_id] = success
    return found


def _success_after(connection: Connection, job_id: int, after_id: int) -> Notice | None:
    # The newest alone: whatever a job does that never succeeds, its log is not read again and again.
    later = (
        select(job_log.c.id, job_log.c.job_group, job_log.c.outcome, job_log.c.ended_ms, job_log.c.attempt)
        .where(job_log.c.job_id == job_id, job_log.c.id > after_id)
        .order_by(job_log.c.id.desc())
        .limit(_LOOKED_AT)
        .subquery()
    )
    row = connection.execute(
        select(later).where(later.c.outcome == Outcome.SUCCEEDED.value).order_by(later.c.id).limit(1)
    ).first()
    if row is None:
        return None
    return Notice(
        AlarmKind.RECOVERED, row.ended_ms or 0, GroupId(row.job_group), JobId(job_id), RunId(row.id), row.attempt
    )


def _open_runs(kind: AlarmKind, phases: tuple[Phase, ...], condition: ColumnElement[bool]) -> Select[Any]:
    is_noted = exists().where(alarm_noted.c.run_id == job_log.c.id, alarm_noted.c.kind == kind.value)
    columns = (
        *(job_log.c.id, job_log.c.job_id, job_log.c.job_group, job_log.c.attempt),
        *(alarm_watch.c.late_start_s, alarm_watch.c.long_run_s),
    )
    return (
        select(*columns)
        .select_from(alarm_watch.join(job_log, job_log.c.job_id == alarm_watch.c.job_id))
        # Each of them, so that the index of open runs is gone through and not the log of the job.
        .where(job_log.c.phase.in_([each.value for each in phases]), condition, ~is_noted)
    )


def _notice(kind: AlarmKind, row: Any, allowed_s: int, now_ms: int) -> Notice:
    return Notice(
        kind,
        now_ms,
        GroupId(row.job_group),
        JobId(row.job_id),
        RunId(row.id),
        row.attempt,
        words=f"> {allowed_s} s",
    )
