"""Events: the history of jobs and the audit of changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from jobwheel.admin.domain.ids import EventId, GroupId, JobId, RunId

SYSTEM = "system"
"""The actor of what the scheduler does by itself."""


class EventKind(StrEnum):
    """What happened. The names are stable: people filter by them."""

    JOB_CREATED = "job.created"
    JOB_UPDATED = "job.updated"
    JOB_DELETED = "job.deleted"
    JOB_STARTED = "job.started"
    JOB_STOPPED = "job.stopped"
    JOB_FINISHED = "job.finished"
    JOB_CORRUPT = "job.corrupt"
    JOB_SCRIPT_SAVED = "job.script_saved"
    JOB_MISFIRED = "job.misfired"
    RUN_TRIGGERED = "run.triggered"
    RUN_REMOVED = "run.removed"
    GROUP_CREATED = "group.created"
    GROUP_UPDATED = "group.updated"
    GROUP_DELETED = "group.deleted"
    GROUP_ADDRESS_DRAINED = "group.address_drained"
    GROUP_ADDRESS_UNDRAINED = "group.address_undrained"
    USER_CREATED = "user.created"
    USER_PASSWORD_CHANGED = "user.password_changed"  # noqa: S105 - the name of an event
    USER_SIGNED_IN = "user.signed_in"
    USER_SIGNED_OUT = "user.signed_out"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to be written in the transaction of what it tells. `details` is JSON; no secrets in it."""

    kind: EventKind
    at_ms: int
    actor: str = SYSTEM
    group_id: GroupId | None = None
    job_id: JobId | None = None
    run_id: RunId | None = None
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Event:
    """A stored event."""

    id: EventId
    kind: str
    at_ms: int
    actor: str
    group_id: GroupId | None
    job_id: JobId | None
    run_id: RunId | None
    details: Mapping[str, object]
