"""Jobs in documents, as the API spells them: by app name and key, never by an id."""

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from jobwheel.admin.api.job_alarm_models import AlarmRules
from jobwheel.admin.api.job_models import JobFields, JobModel, ScheduleTypeName, Status, job_model
from jobwheel.admin.api.models import Body, one_of
from jobwheel.admin.domain.alarm import JobAlarms
from jobwheel.admin.domain.group import AddressType, Group
from jobwheel.admin.domain.job import JobAddress
from jobwheel.admin.services.blaming import blaming
from jobwheel.admin.services.job_events import alarm_details
from jobwheel.admin.services.job_wishes import (
    Action,
    Changes,
    Export,
    JobChange,
    JobDocument,
    JobState,
    JobWish,
    Names,
)
from jobwheel.admin.services.scripts import is_storable_remark

_MOST_CHANNELS: Final = 20

_KEPT: Final = frozenset({"anchor_at"})
"""Fields that stay as they are when a document does not name them: the moment of the first start is nobody's wish."""

_ALWAYS: Final = ("name", "schedule_type", "schedule_conf")


class KeyedAlarmSettings(AlarmRules):
    """What a job's people are told of, and where: the channels of these names, or the default ones if it is empty."""

    channels: list[str] = Field(default_factory=list, max_length=_MOST_CHANNELS)


_DEFAULTS: Final = {
    **JobFields().model_dump(by_alias=True),
    "alarm_settings": KeyedAlarmSettings().model_dump(),
}
"""What a field is that a document does not name."""


class KeyedJobBody(JobFields):
    """A job as it shall be: a field that is left out has its default.

    `children` are jobs that it triggers: `app/key`, or the key alone of one of the same group. Left out, `status` stays
    as it is (a new job is stopped), and so do `anchor_at` and the script `glue_source`.
    """

    # Its channels have names here, and no ids.
    alarm_settings: KeyedAlarmSettings = Field(default_factory=KeyedAlarmSettings)  # type: ignore[assignment]

    name: str
    schedule_type: ScheduleTypeName
    children: list[str] = Field(default_factory=list, max_length=100)
    status: Status | None = None
    glue_source: str | None = None
    glue_remark: str | None = None

    def wish(self, address: JobAddress) -> JobWish:
        """The same for the use cases."""
        left_out = {"app_name", "key", "children", "status", "glue_source", "glue_remark", "alarm_settings"}
        fields = self.model_dump(by_alias=True, exclude_unset=True, exclude=left_out)
        unnamed = {name: value for name, value in _DEFAULTS.items() if name not in _KEPT | left_out}
        given = JobFields.model_validate({**unnamed, **fields}).given()
        script = {"glue_source": self.glue_source, "glue_remark": self.glue_remark}
        given |= {name: text for name, text in script.items() if text is not None}
        given["alarms"] = self.alarm_settings.model_dump(exclude={"channels"})
        children = tuple(dict.fromkeys(JobAddress.parse(each, address.app_name) for each in self.children))
        running = None if self.status is None else self.status == "running"
        return JobWish(address, given, children, running, tuple(self.alarm_settings.channels))


class JobEntry(KeyedJobBody):
    """A job of a document; `app_name` and `key` say which."""

    app_name: str
    key: str

    def read(self, place: str) -> JobWish:
        """The same for the use cases; `place` is what it is called by when something is wrong."""
        address = JobAddress(self.app_name, self.key)
        with blaming(place, str(address)):
            return self.wish(address)


class GroupEntry(Body):
    """A group of a document; it is made if there is none of the app name, and left as it is if there is."""

    app_name: str
    title: str
    address_type: Literal["registered", "fixed"] = "registered"
    addresses: list[str] = Field(default_factory=list)


class DocumentBody(Body):
    """Groups and jobs as they shall be; with `delete_missing` other jobs with keys of these groups are deleted."""

    groups: list[GroupEntry] = Field(default_factory=list)
    jobs: list[JobEntry] = Field(default_factory=list)
    delete_missing: bool = False

    def read(self) -> JobDocument:
        """The same for the use cases."""
        groups = [each.model_dump(exclude_unset=True) for each in self.groups]
        return JobDocument(groups, [each.read(f"jobs[{at}]") for at, each in enumerate(self.jobs)], self.delete_missing)


class ApplyBody(DocumentBody):
    """With the `fingerprint` of a plan nothing is done but what the plan showed."""

    fingerprint: str | None = None


class FieldChangeModel(BaseModel):
    """A field before and after; null = it has its default."""

    field: str
    before: Any
    after: Any


class JobChangeModel(BaseModel):
    """What is done with a job; `fields` of a change, by the names of a document."""

    app_name: str
    key: str
    name: str
    job_id: int | None
    action: str = one_of(Action)
    fields: list[FieldChangeModel]
    note: str


class ChangesModel(BaseModel):
    """What a document does; `new_groups` are app names."""

    fingerprint: str
    new_groups: list[str]
    jobs: list[JobChangeModel]


class PutJobModel(BaseModel):
    """A job, and what was done with it: create, change or unchanged."""

    action: str
    fields: list[FieldChangeModel]
    job: JobModel


class ExportModel(BaseModel):
    """A document of what is stored: `jobs` are `JobEntry`, without the fields that have their defaults."""

    groups: list[dict[str, Any]]
    jobs: list[dict[str, Any]]


def changes_model(changes: Changes) -> ChangesModel:
    """What a document does, for the API."""
    return ChangesModel(
        fingerprint=changes.fingerprint,
        new_groups=list(changes.new_groups),
        jobs=[_change_model(each, changes.names) for each in changes.jobs],
    )


def put_model(changes: Changes) -> PutJobModel:
    """What became of the only job of the changes, for the API."""
    (change,) = changes.jobs
    assert change.after is not None, "a job that was put is there"
    return PutJobModel(action=change.action, fields=_fields(change, changes.names), job=job_model(change.after.job))


def export_model(export: Export) -> ExportModel:
    """A document of what is stored."""
    return ExportModel(
        groups=[_group_entry(each) for each in export.groups],
        jobs=[
            {"app_name": address.app_name, "key": address.key, **entry_of(state, export.names)}
            for address, state in export.jobs
        ],
    )


def entry_of(state: JobState, names: Names) -> dict[str, Any]:
    """A stored job as a document has it, without what has its default."""
    stored = job_model(state.job).model_dump(by_alias=True)
    stored["alarm_settings"] = _alarm_settings(state.job.settings.alarms, names)
    entry = {
        name: stored[name]
        for name, default in _DEFAULTS.items()
        if name in _ALWAYS or (name in stored and stored[name] != default)
    }
    # The ids of children that are gone mean nothing elsewhere.
    children = state.job.settings.child_job_ids
    entry["children"] = [str(names.children[each]) for each in children if each in names.children]
    if not entry["children"]:
        del entry["children"]
    entry["status"] = stored["status"]
    if state.script is not None and state.script.source.strip():
        entry["glue_source"] = state.script.source
        if is_storable_remark(state.script.remark):
            entry["glue_remark"] = state.script.remark
    return entry


def _alarm_settings(alarms: JobAlarms, names: Names) -> dict[str, Any]:
    """Without the channels that are gone: they have no names."""
    channels = [names.channels[each] for each in alarms.channel_ids if each in names.channels]
    rules = {name: value for name, value in alarm_details(alarms).items() if name != "channel_ids"}
    return {**rules, "channels": channels}


def _group_entry(group: Group) -> dict[str, Any]:
    entry: dict[str, Any] = {"app_name": group.app_name, "title": group.title}
    if group.address_type is AddressType.FIXED:
        entry |= {"address_type": "fixed", "addresses": list(group.addresses)}
    return entry


def _change_model(change: JobChange, names: Names) -> JobChangeModel:
    state = change.after or change.before
    assert state is not None, "it is there before or afterwards"
    # What a plan would make has no id yet that will be its own.
    job_id = None if change.before is None else change.before.job.id
    return JobChangeModel(
        app_name=change.address.app_name,
        key=change.address.key,
        name=state.job.settings.name,
        job_id=job_id,
        action=change.action,
        fields=_fields(change, names),
        note=change.note,
    )


def _fields(change: JobChange, names: Names) -> list[FieldChangeModel]:
    if change.action is not Action.CHANGE and change.action is not Action.CREATE:
        return []
    before = {} if change.before is None else entry_of(change.before, names)
    after = {} if change.after is None else entry_of(change.after, names)
    fields = dict.fromkeys((*after, *before))
    return [
        FieldChangeModel(field=name, before=before.get(name), after=after.get(name))
        for name in fields
        if before.get(name) != after.get(name)
    ]
