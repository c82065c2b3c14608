"""Which jobs may be the children of a job, and who sees them.

A child exists, and the job does not come of it itself. To somebody to whom some groups alone exist, children in others
are not shown: an edit by him keeps them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobwheel.admin.domain.event import Event
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.job_input import MOST_CHILDREN_TEXT
from jobwheel.admin.store import Connection
from jobwheel.admin.store.job_children import Kin, jobs_elsewhere, read_kin

_FIELD = "child_job_ids"
_MOST_SHOWN = 20

GroupIds = frozenset[GroupId] | None
"""The groups that exist for somebody; None: all."""


def check_children(
    connection: Connection,
    job_id: JobId | None,
    name: str,
    children: Sequence[JobId],
    group_ids: GroupIds = None,
    kept: Sequence[JobId] = (),
) -> None:
    """Check the children that a job is to have; nobody else changes those of any job meanwhile (`lock_children`).

    Args:
        connection: the transaction.
        job_id: the job; None for one that is not there yet.
        name: its name.
        children: the children.
        group_ids: the groups that exist for who asks: other jobs are not there,
        kept: but for these.

    Raises:
        InvalidFieldError: one of them does not exist, or the job would come of itself; names the way.
    """
    kin = read_kin(connection, children)
    _refuse_missing(
        children, [each for each in children if each in kin and (each in kept or _in(kin[each], group_ids))]
    )
    # A job that is not there yet is nobody's child.
    way = None if job_id is None else _way_back(connection, job_id, children, kin)
    if way is not None and job_id is not None:
        own = f"job {job_id} ({name[:50]})"
        told = [own, *(_told(each, kin[each], group_ids) for each in way), own]
        if len(told) > _MOST_SHOWN:
            told = [*told[: _MOST_SHOWN // 2], "…", *told[-_MOST_SHOWN // 2 :]]
        raise InvalidFieldError(_FIELD, f"makes a circle, which would never end: {' → '.join(told)}")


def with_hidden(
    connection: Connection, old: Sequence[JobId], given: Sequence[JobId], group_ids: GroupIds
) -> tuple[JobId, ...]:
    """The children that somebody gives a job, and those that it has and he does not see.

    Raises:
        InvalidFieldError: he names one that he does not see, or there is no room for all.
    """
    hidden = jobs_elsewhere(connection, {*old, *given}, group_ids)
    if hidden.intersection(given):
        # All that are not there for him, so that the answer does not tell which of them are for others.
        there = read_kin(connection, given)
        _refuse_missing(given, [each for each in given if each in there and each not in hidden])
    children = (*given, *(each for each in old if each in hidden))
    if len(",".join(str(each) for each in children)) > MOST_CHILDREN_TEXT:
        raise InvalidFieldError(_FIELD, "leave no room for those that the job has in other groups; name fewer")
    return children


def jobs_as_seen(connection: Connection, jobs: Sequence[Job], group_ids: GroupIds) -> list[Job]:
    """Jobs without the children that somebody does not see."""
    children = {child for job in jobs for child in job.settings.child_job_ids}
    hidden = jobs_elsewhere(connection, children, group_ids) if children else set()
    return [_without(job, hidden) if hidden.intersection(job.settings.child_job_ids) else job for job in jobs]


def events_as_seen(connection: Connection, events: Sequence[Event], group_ids: GroupIds) -> list[Event]:
    """A job's events without the children that somebody does not see."""
    children = {child for event in events for each in _parts(event.details) for child in each.get(_FIELD, ())}
    hidden = jobs_elsewhere(connection, children, group_ids) if children else set()
    return (
        [replace(event, details=_details_without(event.details, hidden)) for event in events] if hidden else [*events]
    )


def _refuse_missing(children: Sequence[JobId], there: Sequence[JobId]) -> None:
    missing = [str(child) for child in children if child not in there]
    if missing:
        raise InvalidFieldError(_FIELD, f"there is no job {', '.join(missing)}")


def _in(kin: Kin, group_ids: GroupIds) -> bool:
    return group_ids is None or kin.group_id in group_ids


def _told(job_id: JobId, kin: Kin, group_ids: GroupIds) -> str:
    return f"job {job_id} ({kin.name[:50]})" if _in(kin, group_ids) else "a job of another group"


def _without(job: Job, hidden: set[JobId]) -> Job:
    children = tuple(each for each in job.settings.child_job_ids if each not in hidden)
    return replace(job, settings=replace(job.settings, child_job_ids=children))


def _parts(details: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Where an event has settings: of a new job at its top, of a change before and after."""
    return [details, *(details[name] for name in ("before", "after") if isinstance(details.get(name), Mapping))]


def _details_without(details: Mapping[str, Any], hidden: set[JobId]) -> dict[str, Any]:
    shown = {
        name: _details_without(value, hidden) if name in ("before", "after") and isinstance(value, Mapping) else value
        for name, value in details.items()
    }
    if _FIELD in shown:
        shown[_FIELD] = [each for each in shown[_FIELD] if each not in hidden]
    return shown


def _way_back(
    connection: Connection, job_id: JobId, children: Sequence[JobId], kin: dict[JobId, Kin]
) -> list[JobId] | None:
    """The shortest way from the children to the job, generation by generation; `kin` gets whatever is read."""
    came_from: dict[JobId, JobId | None] = dict.fromkeys(children)
    generation = list(came_from)
    if job_id in came_from:
        return []
    while generation:
        kin.update(read_kin(connection, [each for each in generation if each not in kin]))
        following: list[JobId] = []
        for each in generation:
            for child in kin[each].children if each in kin else ():
                if child == job_id:
                    return _path(came_from, each)
                if child not in came_from:
                    came_from[child] = each
                    following.append(child)
        generation = following
    return None


def _path(came_from: Mapping[JobId, JobId | None], last: JobId) -> list[JobId]:
    path = [last]
    while (before := came_from[path[-1]]) is not None:
        path.append(before)
    return path[::-1]
