"""Which group a thing belongs to, as it is stored."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import event, job_group, job_info, job_log


def group_of_job(connection: Connection, job_id: int) -> GroupId | None:
    """The group of a job; of one that is deleted, and has its events yet, the group that it was of at last."""
    found = connection.execute(select(job_info.c.job_group).where(job_info.c.id == job_id)).scalar()
    if found is None:
        last = select(event.c.job_group).where(event.c.job_id == job_id).order_by(event.c.id.desc()).limit(1)
        found = connection.execute(last).scalar()
    return None if found is None else GroupId(found)


def group_of_run(connection: Connection, run_id: int) -> GroupId | None:
    """The group that a run's job was of when the run was made."""
    found = connection.execute(select(job_log.c.job_group).where(job_log.c.id == run_id)).scalar()
    return None if found is None else GroupId(found)


def group_of_group(connection: Connection, group_id: int) -> GroupId | None:
    """A group itself, if there is one of this id."""
    found = connection.execute(select(job_group.c.id).where(job_group.c.id == group_id)).scalar()
    return None if found is None else GroupId(found)


def known_runs(connection: Connection, run_ids: Sequence[RunId], group_id: GroupId | None) -> set[RunId]:
    """Those of the runs that are there; with a group, those that were made for it."""
    query = select(job_log.c.id).where(job_log.c.id.in_(run_ids))
    if group_id is not None:
        query = query.where(job_log.c.job_group == group_id)
    return set(connection.execute(statements(connection).by_index(query, job_log, PRIMARY_KEY)).scalars())
