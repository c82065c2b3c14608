"""Jobs as the API spells them."""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, Field

from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.job_alarm_models import AlarmSettingsBody, AlarmSettingsModel
from jobwheel.admin.api.models import Body, Id, JobRef, PageQuery, PatchBody, SearchText, one_of
from jobwheel.admin.domain.job import Job, JobActivity, LastRun, PauseWindow
from jobwheel.admin.domain.policies import (
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RetryBackoff,
    RouteStrategy,
    RunLimitOverflow,
    UncertainSend,
)
from jobwheel.admin.services.job_events import alarm_details
from jobwheel.admin.services.job_plan import planned_next_ms
from jobwheel.schedule import ScheduleType

Status = Literal["running", "stopped"]
# By the names that people know them by: the names of the use cases.
_INSTANTS: Final = {"anchor_at": "anchor_ms", "valid_from": "valid_from_ms", "valid_until": "valid_until_ms"}
ScheduleTypeName = Annotated[str, one_of(ScheduleType)]


class PauseWindowBody(Body):
    """A time in which the schedule plans nothing: `from` belongs to it, `until` does not."""

    from_: str = Field(alias="from")
    until: str
    remark: str = ""

    def read(self, field: str) -> PauseWindow:
        """The window itself; `field` is what it is called by when it is wrong."""
        from_ms, until_ms = from_text(f"{field}.from", self.from_), from_text(f"{field}.until", self.until)
        return PauseWindow(from_ms, until_ms, self.remark)


class JobFields(Body):
    """What may be said about a job. `time_zone` null = the installation's; `anchor_at` is for FIX_RATE alone.

    A run ends after `timeout_s` seconds (0 = no limit). `block_strategy` says what its executor does with a run that
    comes while the job runs there.

    The schedule plans from `valid_from` on and before `valid_until` (null = no bound), and not in `pause_windows`. At
    most `run_limit` runs are under way at once in the whole cluster (null = no limit); those over it WAIT for one to
    end, or are ended at once (DISCARD).

    A run that failed, timed out or is lost is tried again `retry_count` times, `retry_interval_s` seconds later each
    (FIXED), or twice as long after each time (DOUBLING), `retry_most_s` at most (null = 30 days). When a run, or one of
    its retries, has succeeded, each of `child_job_ids` runs once. Of a run that may not have arrived at an executor
    that is not Jobwheel's own it is asked (ASK), or it is sent again and may run twice (SEND_AGAIN): `uncertain_send`.

    Runs are kept for `retention_days` (0 = for ever, null = as the admin's setting says).
    """

    name: str = ""
    author: str = ""
    alarm_email: str = ""
    schedule_type: ScheduleTypeName = "NONE"
    schedule_conf: str = ""
    time_zone: str | None = None
    anchor_at: str | None = None
    misfire_strategy: Annotated[str, one_of(MisfireStrategy)] = "DO_NOTHING"
    route_strategy: Annotated[str, one_of(RouteStrategy)] = "FIRST"
    handler: str = ""
    parameter: str = ""
    block_strategy: Annotated[str, one_of(BlockStrategy)] = "SERIAL_EXECUTION"
    timeout_s: int = 0
    retry_count: int = 0
    glue_type: Annotated[str, one_of(GlueType)] = "BEAN"
    tags: list[str] = Field(default_factory=list)
    valid_from: str | None = None
    valid_until: str | None = None
    pause_windows: list[PauseWindowBody] = Field(default_factory=list)
    run_limit: int | None = None
    run_limit_overflow: Annotated[str, one_of(RunLimitOverflow)] = "WAIT"
    retry_interval_s: int = 0
    retry_backoff: Annotated[str, one_of(RetryBackoff)] = "FIXED"
    retry_most_s: int | None = None
    uncertain_send: Annotated[str, one_of(UncertainSend)] = "ASK"
    retention_days: int | None = None
    alarm_settings: AlarmSettingsBody = Field(default_factory=AlarmSettingsBody)

    def given(self) -> dict[str, Any]:
        """The fields that are given, as the use cases name them."""
        given = self.model_dump(exclude_unset=True, exclude={"running", "version", "pause_windows", "alarm_settings"})
        for field, name in _INSTANTS.items():
            if field in given:
                given[name] = from_text(field, given.pop(field))
        if "pause_windows" in self.model_fields_set:
            given["pause_windows"] = [each.read(f"pause_windows[{at}]") for at, each in enumerate(self.pause_windows)]
        if "alarm_settings" in self.model_fields_set:
            given["alarms"] = self.alarm_settings.model_dump()
        return given


class JobIdFields(JobFields):
    """What may be said about a job that is known by its id: ids of others, and the key of its group's files."""

    group_id: Id = 0
    child_job_ids: list[JobRef] = Field(default_factory=list)
    key: str | None = None


class JobCreate(JobIdFields):
    """A new job, stopped unless `running`.

    One whose `glue_type` is not BEAN runs a script: `glue_source`, with `glue_remark` to say what it is. It begins with
    a sample if they are left out, and is changed through `/jobs/{job_id}/script`.
    """

    group_id: Id
    name: str
    schedule_type: ScheduleTypeName
    running: bool = False
    glue_source: str = ""
    glue_remark: str = ""


class JobPatch(JobIdFields, PatchBody):
    """Fields that are left out stay as they are; with `version` only if nobody changed the job meanwhile."""

    version: int | None = None


class TriggerBody(Body):
    """A run by hand: `parameter` null = the job's own; `addresses` empty = any of the group's."""

    parameter: str | None = None
    addresses: list[str] = Field(default_factory=list, max_length=1000)


class JobQuery(PageQuery):
    """Which jobs: `name` is a part of the name, `tag` one of the tags (the case does not matter)."""

    group_id: Id | None = None
    status: Status | None = None
    handler: SearchText | None = None
    name: SearchText | None = None
    tag: SearchText | None = None


class PauseWindowModel(BaseModel):
    """A time in which the schedule plans nothing: `from` belongs to it, `until` does not."""

    from_: str = Field(serialization_alias="from")
    until: str
    remark: str


class LastRunModel(BaseModel):
    """The newest run that is done, and how long it took since it was sent."""

    id: int
    outcome: str | None
    planned_at: str | None
    ended_at: str | None
    took_ms: int | None


class JobModel(BaseModel):
    """A job. `next_planned_at` is null while nothing is planned: stopped, or waiting for the end of a run.

    `running_now` tells how many of its runs have been sent and are not done.
    """

    id: int
    group_id: int
    name: str
    author: str
    alarm_email: str
    schedule_type: str
    schedule_conf: str
    time_zone: str | None
    anchor_at: str | None
    misfire_strategy: str
    route_strategy: str
    handler: str
    parameter: str
    block_strategy: str
    timeout_s: int
    retry_count: int
    glue_type: str
    child_job_ids: list[int]
    key: str | None
    tags: list[str]
    valid_from: str | None
    valid_until: str | None
    pause_windows: list[PauseWindowModel]
    run_limit: int | None
    run_limit_overflow: str
    retry_interval_s: int
    retry_backoff: str
    retry_most_s: int | None
    uncertain_send: str
    retention_days: int | None
    alarm_settings: AlarmSettingsModel
    status: Status
    running_now: int
    last_run: LastRunModel | None
    last_planned_at: str | None
    next_planned_at: str | None
    created_at: str
    updated_at: str
    version: int


def job_model(job: Job, activity: JobActivity | None = None) -> JobModel:
    """A job for the API; without an activity it has no runs."""
    settings = job.settings
    activity = activity or JobActivity()
    return JobModel(
        id=job.id,
        group_id=settings.group_id,
        name=settings.name,
        author=settings.author,
        alarm_email=settings.alarm_email,
        schedule_type=settings.schedule_type,
        schedule_conf=settings.schedule_conf,
        time_zone=settings.time_zone,
        anchor_at=to_text(settings.anchor_ms),
        misfire_strategy=settings.misfire_strategy,
        route_strategy=settings.route_strategy,
        handler=settings.handler,
        parameter=settings.parameter,
        block_strategy=settings.block_strategy,
        timeout_s=settings.timeout_s,
        retry_count=settings.retry_count,
        glue_type=settings.glue_type,
        child_job_ids=list(settings.child_job_ids),
        key=settings.key,
        tags=list(settings.tags),
        valid_from=to_text(settings.valid_from_ms),
        valid_until=to_text(settings.valid_until_ms),
        pause_windows=[
            PauseWindowModel(from_=to_text(each.from_ms), until=to_text(each.until_ms), remark=each.remark)
            for each in settings.pause_windows
        ],
        run_limit=settings.run_limit,
        run_limit_overflow=settings.run_limit_overflow,
        retry_interval_s=settings.retry_interval_s,
        retry_backoff=settings.retry_backoff,
        retry_most_s=settings.retry_most_s,
        uncertain_send=settings.uncertain_send,
        retention_days=settings.retention_days,
        running_now=activity.running,
        last_run=None if activity.last_run is None else _last_run_model(activity.last_run),
        alarm_settings=AlarmSettingsModel.model_validate(alarm_details(settings.alarms)),
        status="running" if job.running else "stopped",
        last_planned_at=to_text(job.last_ms),
        next_planned_at=to_text(planned_next_ms(job)),
        created_at=to_text(job.created_ms),
        updated_at=to_text(job.updated_ms),
        version=job.version,
    )


def _last_run_model(run: LastRun) -> LastRunModel:
    return LastRunModel(
        id=run.id,
        outcome=run.outcome,
        planned_at=to_text(run.planned_ms),
        ended_at=to_text(run.ended_ms),
        took_ms=run.took_ms,
    )
