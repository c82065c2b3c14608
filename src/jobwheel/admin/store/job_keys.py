"""Jobs by app name and key: the names that stay the same from one installation to the next."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import JobAddress
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_group, job_info

_SLICE = 1000


@dataclass(frozen=True, slots=True)
class JobName:
    """What a job is called: by people, and in files (None: its job has no key, and is not in any)."""

    name: str
    address: JobAddress | None


def list_keys(connection: Connection, group_id: GroupId) -> dict[str, JobId]:
    """The jobs of a group that have a key."""
    query = select(job_info.c.job_key, job_info.c.id).where(
        job_info.c.job_group == group_id, job_info.c.job_key.is_not(None)
    )
    return {row.job_key: JobId(row.id) for row in connection.execute(query)}


def hold_jobs(connection: Connection, job_ids: Collection[JobId]) -> None:
    """Hold the rows of these jobs until the transaction ends, in the order of their ids."""
    for ids in _slices(job_ids):
        query = select(job_info.c.id).where(job_info.c.id.in_(ids)).order_by(job_info.c.id).with_for_update()
        connection.execute(statements(connection).by_index(query, job_info, PRIMARY_KEY)).all()


def job_names(connection: Connection, job_ids: Iterable[JobId]) -> dict[JobId, JobName]:
    """What these jobs are called; those that are gone are not in the answer."""
    names: dict[JobId, JobName] = {}
    for ids in _slices(job_ids):
        query = (
            select(job_info.c.id, job_info.c.job_desc, job_info.c.job_key, job_group.c.app_name)
            .join_from(job_info, job_group, job_group.c.id == job_info.c.job_group)
            .where(job_info.c.id.in_(ids))
        )
        for row in connection.execute(query):
            address = None if row.job_key is None else JobAddress(row.app_name, row.job_key)
            names[JobId(row.id)] = JobName(row.job_desc, address)
    return names


def _slices(job_ids: Iterable[JobId]) -> Iterator[list[JobId]]:
    ids = sorted(set(job_ids))
    for first in range(0, len(ids), _SLICE):
        yield ids[first : first + _SLICE]
