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
    JOB_BACKFILLED = "job.backfilled"
    RUN_TRIGGERED = "run.triggered"
    RUN_REMOVED = "run.removed"
    RUN_CHILD_GONE = "run.child_gone"
    RUN_CHILD_REFUSED = "run.child_refused"
    RUN_KILL_ASKED = "run.kill_asked"
    RUN_CLEAN_UP_REQUESTED = "run.clean_up_requested"
    RUN_CLEAN_UP_ENDED = "run.clean_up_ended"
    GROUP_CREATED = "group.created"
    GROUP_UPDATED = "group.updated"
    GROUP_DELETED = "group.deleted"
    GROUP_ADDRESS_DRAINED = "group.address_drained"
    GROUP_ADDRESS_UNDRAINED = "group.address_undrained"
    GROUP_TOKEN_MADE = "group.token_made"  # noqa: S105 - the name of an event, as those below
    GROUP_TOKEN_ROTATED = "group.token_rotated"  # noqa: S105
    GROUP_TOKEN_REVOKED = "group.token_revoked"  # noqa: S105
    TOKEN_MADE = "token.made"  # noqa: S105
    TOKEN_REVOKED = "token.revoked"  # noqa: S105
    GROUP_OFFLINE = "group.offline"
    GROUP_ONLINE = "group.online"
    GROUP_EXECUTOR_GONE = "group.executor_gone"
    GROUP_EXECUTOR_BACK = "group.executor_back"
    ALARM_CHANNEL_CREATED = "alarm_channel.created"
    ALARM_CHANNEL_UPDATED = "alarm_channel.updated"
    ALARM_CHANNEL_DELETED = "alarm_channel.deleted"
    ALARM_GIVEN_UP = "alarm.given_up"
    ALARM_OUTDATED = "alarm.outdated"
    INSTALLATION_HANDED_BACK = "installation.handed_back"
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
