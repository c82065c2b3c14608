"""What the index of a job's planned times knows of the causes of its runs."""

from sqlalchemy import Connection, select

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import job_log


def last_planned(connection: Connection, job_id: JobId) -> int | None:
    """The latest planned time of a job's schedule-caused runs, epoch milliseconds.

    From the index alone: a job of which others make millions of runs may have none by its schedule.
    """
    by_schedule = [each.value for each in TriggerType if each.by_schedule]
    query = (
        select(job_log.c.planned_ms)
        .where(job_log.c.job_id == job_id, job_log.c.trigger_type.in_(by_schedule), job_log.c.planned_ms.is_not(None))
        .order_by(job_log.c.planned_ms.desc(), job_log.c.id.desc())
        .limit(1)
    )
    return connection.execute(query).scalar()


def has_runs_by(
    connection: Connection, job_id: JobId, cause: TriggerType, from_ms: int | None, until_ms: int | None
) -> bool:
    """Whether a job has runs by a cause that are planned within a time (epoch milliseconds, None = at any time).

    No row is read for it: a job of which one cause makes millions of runs may have none by another one.
    """
    query = select(job_log.c.id).where(job_log.c.job_id == job_id, job_log.c.trigger_type == cause)
    if from_ms is not None:
        query = query.where(job_log.c.planned_ms >= from_ms)
    if until_ms is not None:
        query = query.where(job_log.c.planned_ms < until_ms)
    # In the order of the index, which so is the one that is chosen.
    query = query.order_by(job_log.c.planned_ms.desc(), job_log.c.id.desc()).limit(1)
    query = statements(connection).by_index(query, job_log, "jobwheel_log_job_planned")
    return connection.execute(query).first() is not None
