"""Kills that were asked for: the run's row says since when, and that it never takes off any more."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select, update

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Phase, Run
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import job_log

_SENT = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)


def ask_kill(connection: Connection, run_ids: Sequence[RunId], now_ms: int, message: str) -> None:
    """Have open runs killed, which the caller holds; `now_ms` is by the database's clock.

    A run that is being sent is looked at once its executor has answered, or not; any other now.
    """
    connection.execute(
        update(job_log)
        .where(job_log.c.id.in_(run_ids), job_log.c.kill_ms.is_(None))
        .values(
            kill_ms=now_ms,
            check_ms=case((job_log.c.phase == Phase.SENDING, None), else_=now_ms),
            trigger_msg=func.coalesce(job_log.c.trigger_msg, "").concat(message),
        )
    )


def last_open_run(connection: Connection, job_id: JobId) -> RunId | None:
    """The newest run of a job that is not done."""
    newest = select(func.max(job_log.c.id)).where(job_log.c.job_id == job_id, job_log.c.phase.is_not(None))
    query = statements(connection).by_index(newest, job_log, "jobwheel_log_open")
    run_id = connection.execute(query).scalar()
    return None if run_id is None else RunId(run_id)


@dataclass(frozen=True, slots=True)
class Holder:
    """A process that runs were sent to; without an id it is one of another make."""

    group_id: GroupId
    address: str
    instance_id: str | None


def holder_of(run: Run) -> Holder | None:
    """The process that a run was sent to, if it was."""
    if run.phase not in _SENT:
        return None
    return Holder(run.group_id, run.executor_address or "", run.instance_id)


def holders(connection: Connection, job_id: JobId) -> set[Holder]:
    """The processes that have runs of a job that no kill was asked for."""
    columns = (job_log.c.job_group, job_log.c.executor_address, job_log.c.instance_id)
    theirs = select(*columns).where(job_log.c.job_id == job_id, job_log.c.phase.in_(_SENT), job_log.c.kill_ms.is_(None))
    query = statements(connection).by_index(theirs.distinct(), job_log, "jobwheel_log_open")
    return {
        Holder(GroupId(row.job_group), row.executor_address or "", row.instance_id) for row in connection.execute(query)
    }


def open_to_kill(connection: Connection, job_id: JobId, until_id: RunId, most: int) -> list[RunId]:
    """Runs of a job that are not done, and that no kill was asked for, up to the one with an id."""
    chosen = (
        select(job_log.c.id)
        .where(
            job_log.c.job_id == job_id,
            job_log.c.phase.is_not(None),
            job_log.c.kill_ms.is_(None),
            job_log.c.id <= until_id,
        )
        .limit(most)
    )
    query = statements(connection).by_index(chosen, job_log, "jobwheel_log_open")
    return [RunId(run_id) for run_id in connection.execute(query).scalars()]
