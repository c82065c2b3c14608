"""Whether a job may be as it is wanted, as far as what is stored decides that."""

from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.job import Job, JobSettings
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.services.child_jobs import check_children
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, TakenError
from jobwheel.admin.services.job_alarms import check_channels
from jobwheel.admin.services.job_input import check_whole
from jobwheel.admin.services.job_plan import schedule_of
from jobwheel.admin.store import Connection
from jobwheel.admin.store.alarm_channels import list_channels
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.jobs import find_job_by_key
from jobwheel.admin.store.zone import InstallationZone


def check_new(
    connection: Connection, zone: InstallationZone, settings: JobSettings, group_ids: frozenset[GroupId] | None
) -> None:
    """Check a new job for somebody to whom these groups alone exist (None: all); children are locked if it has any.

    Raises:
        NotFoundError: there is no such group.
        InvalidFieldError: a child or a channel is not there.
        TakenError: the group has a job of this key.
    """
    if settings.child_job_ids:
        check_children(connection, None, settings.name, settings.child_job_ids, group_ids)
    _check_references(connection, zone, settings, None, group_ids)


def check_edit(
    connection: Connection,
    zone: InstallationZone,
    settings: JobSettings,
    old: Job,
    group_ids: frozenset[GroupId] | None,
) -> None:
    """Check what a job is to be from now on; as `check_new`.

    Raises:
        NotFoundError, InvalidFieldError, TakenError: as there; or the fields do not go together.
        ScheduleError: this is no schedule.
    """
    check_type(settings.glue_type, old)
    check_whole(settings)
    schedule_of(settings, zone.name)
    if settings.child_job_ids != old.settings.child_job_ids:
        kept = old.settings.child_job_ids
        check_children(connection, old.id, settings.name, settings.child_job_ids, group_ids, kept)
    _check_references(connection, zone, settings, old, group_ids)


def check_type(glue_type: GlueType, old: Job) -> None:
    """Check that a job stays what it was made as.

    Raises:
        InvalidFieldError: a script would become a handler, or the other way round, or a script in another language.
    """
    made = old.settings.glue_type
    if glue_type is not made:
        raise InvalidFieldError("glue_type", f"is {made} since the job was made; make another job")


def _check_references(
    connection: Connection,
    zone: InstallationZone,
    settings: JobSettings,
    old: Job | None,
    group_ids: frozenset[GroupId] | None,
) -> None:
    # Held, so that the group cannot be deleted before the job is in it.
    group = get_group(connection, zone, settings.group_id, lock=True)
    if group is None or (group_ids is not None and group.id not in group_ids):
        raise NotFoundError("group", settings.group_id)
    named = settings.alarms.channel_ids
    if named and (old is None or named != old.settings.alarms.channel_ids):
        check_channels(settings.alarms, list_channels(connection))
    if settings.key is None:
        return
    holder = find_job_by_key(connection, settings.group_id, settings.key)
    if holder is not None and (old is None or holder != old.id):
        raise TakenError("key", settings.key, f"job {holder} of the same group")
