"""Which jobs are children of which, as `child_jobid` says: ids with commas between them."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, select

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import job_info

_CHILDREN_LOCK = "jobwheel_children"
_MOST_ID = 2**31 - 1
_SLICE = 1000

HAS_CHILDREN = job_info.c.child_jobid > ""
"""In the words of the index's condition."""


@dataclass(frozen=True, slots=True)
class Kin:
    """A job's name, its group and its children."""

    name: str
    group_id: GroupId
    children: tuple[JobId, ...]


def read_children(text: str | None) -> tuple[JobId, ...]:
    """The ids in a stored list, each once; what is no id of a job (somebody else may have written it) is left out."""
    ids = [item.strip() for item in (text or "").split(",")]
    numbers = [int(item) for item in ids if item.isascii() and item.isdigit() and len(item) <= 10]
    return tuple(JobId(each) for each in dict.fromkeys(numbers) if 1 <= each <= _MOST_ID)


def lock_children(connection: Connection) -> None:
    """Let nobody else change the children of jobs until the transaction ends; taken before any job row."""
    statements(connection).wait_for_lock(connection, _CHILDREN_LOCK)


def read_kin(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, Kin]:
    """Names and children of these jobs; those that are gone are not in the answer."""
    rows = connection.execute(
        select(job_info.c.id, job_info.c.job_desc, job_info.c.job_group, job_info.c.child_jobid).where(
            job_info.c.id.in_(list(job_ids))
        )
    )
    return {JobId(row.id): Kin(row.job_desc, GroupId(row.job_group), read_children(row.child_jobid)) for row in rows}


def jobs_elsewhere(
    connection: Connection, job_ids: Collection[JobId], group_ids: Collection[GroupId] | None
) -> set[JobId]:
    """Those of these jobs that are in none of the groups (None: all groups); those that are gone are nowhere."""
    if group_ids is None:
        return set()
    elsewhere: set[JobId] = set()
    ids = sorted(set(job_ids))
    for first in range(0, len(ids), _SLICE):
        query = select(job_info.c.id).where(
            job_info.c.id.in_(ids[first : first + _SLICE]), job_info.c.job_group.not_in(group_ids)
        )
        elsewhere.update(JobId(each) for each in connection.execute(query).scalars())
    return elsewhere
