"""What the jobs of a page are doing: looked up by index, however long the run log is."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import JobActivity, LastRun
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.tables import job_info, job_log

_UNDER_WAY = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)


def load_activity(connection: Connection, job_ids: Sequence[JobId]) -> dict[JobId, JobActivity]:
    """How many runs of these jobs are under way, and the newest one of each that is done."""
    of_job = job_log.c.job_id == job_info.c.id
    last = select(job_log.c.id).where(of_job, job_log.c.phase.is_(None)).order_by(job_log.c.id.desc()).limit(1)
    running = select(func.count()).select_from(job_log).where(of_job, job_log.c.phase.in_(_UNDER_WAY))
    columns = (job_info.c.id, last.scalar_subquery().label("last"), running.scalar_subquery().label("running"))
    jobs = connection.execute(select(*columns).where(job_info.c.id.in_(job_ids))).all()
    runs = _last_runs(connection, [row.last for row in jobs if row.last is not None])
    return {JobId(row.id): JobActivity(row.running, runs.get(row.last)) for row in jobs}


def _last_runs(connection: Connection, run_ids: Sequence[int]) -> dict[int, LastRun]:
    columns: tuple[Any, ...] = (
        job_log.c.id,
        job_log.c.outcome,
        job_log.c.planned_ms,
        job_log.c.started_ms,
        job_log.c.sent_ms,
        job_log.c.ended_ms,
    )
    rows = connection.execute(select(*columns).where(job_log.c.id.in_(run_ids))) if run_ids else ()
    return {row.id: _last_run(row) for row in rows}


def _last_run(row: Row[Any]) -> LastRun:
    begun_ms = row.started_ms if row.started_ms is not None else row.sent_ms
    took_ms = None if begun_ms is None or row.ended_ms is None else max(0, row.ended_ms - begun_ms)
    outcome = Outcome(row.outcome) if row.outcome in set(Outcome) else None
    return LastRun(RunId(row.id), outcome, row.planned_ms, row.ended_ms, took_ms)
