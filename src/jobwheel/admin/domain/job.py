"""A job: what to run, where, when and how."""

from dataclasses import dataclass, field

import msgspec

from jobwheel.admin.domain.alarm import JobAlarms
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.policies import (
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RetryBackoff,
    RouteStrategy,
    RunLimitOverflow,
    UncertainSend,
)
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.script import DispatchScript
from jobwheel.schedule import ScheduleType, Window, closed_times


@dataclass(frozen=True, slots=True, order=True)
class JobAddress:
    """A job's name in files and other systems: the app name of its group, and its key there. As a text: `app/key`."""

    app_name: str
    key: str

    def __str__(self) -> str:
        return f"{self.app_name}/{self.key}"

    @staticmethod
    def parse(text: str, app_name: str = "") -> "JobAddress":
        """`app/key`, or the key alone of a job of the group `app_name`."""
        before, slash, after = text.partition("/")
        return JobAddress(before, after) if slash else JobAddress(app_name, before)


@dataclass(frozen=True, slots=True, order=True)
class PauseWindow:
    """A time in which a job's schedule plans nothing: `from_ms` belongs to it, `until_ms` does not."""

    from_ms: int
    until_ms: int
    remark: str = ""


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What a person sets. `time_zone` None means the installation's; times are epoch milliseconds.

    `valid_from_ms` is the first millisecond in which the schedule may plan, `valid_until_ms` the first in which it may
    not any more; None = no bound. `pause_windows` are in order. At most `run_limit` runs are under way at once in
    the whole cluster; None = as many as come. Retries wait for `retry_interval_s`, and if the interval doubles, for
    `retry_most_s` at most. Its runs are kept for `retention_days`; 0 = for ever, None = as long as
    the admin's setting says.
    """

    group_id: GroupId
    name: str
    author: str
    schedule_type: ScheduleType
    schedule_conf: str
    handler: str
    alarm_email: str = ""
    parameter: str = ""
    time_zone: str | None = None
    anchor_ms: int | None = None
    misfire_strategy: MisfireStrategy = MisfireStrategy.DO_NOTHING
    route_strategy: RouteStrategy = RouteStrategy.FIRST
    block_strategy: BlockStrategy = BlockStrategy.SERIAL_EXECUTION
    timeout_s: int = 0
    retry_count: int = 0
    glue_type: GlueType = GlueType.BEAN
    child_job_ids: tuple[JobId, ...] = ()
    key: str | None = None
    tags: tuple[str, ...] = ()
    valid_from_ms: int | None = None
    valid_until_ms: int | None = None
    pause_windows: tuple[PauseWindow, ...] = ()
    run_limit: int | None = None
    run_limit_overflow: RunLimitOverflow = RunLimitOverflow.WAIT
    retry_interval_s: int = 0
    retry_backoff: RetryBackoff = RetryBackoff.FIXED
    retry_most_s: int | None = None
    uncertain_send: UncertainSend = UncertainSend.ASK
    retention_days: int | None = None
    alarms: JobAlarms = field(default_factory=JobAlarms)

    @property
    def closed_times(self) -> tuple[Window, ...]:
        """When the schedule plans nothing, by the validity period and the windows."""
        windows = (Window(each.from_ms, each.until_ms) for each in self.pause_windows)
        return closed_times(self.valid_from_ms, self.valid_until_ms, windows)


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. `next_ms` is None while nothing is planned; `version` grows with each edit."""

    id: JobId
    settings: JobSettings
    running: bool
    last_ms: int | None
    next_ms: int | None
    created_ms: int
    updated_ms: int
    version: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a job that is done. `took_ms` None: it was never sent; a Java admin's has no outcome."""

    id: RunId
    outcome: Outcome | None
    planned_ms: int | None
    ended_ms: int | None
    took_ms: int | None


@dataclass(frozen=True, slots=True)
class JobActivity:
    """How many runs of a job are under way (sent and not done), and the last one that is done."""

    running: int = 0
    last_run: LastRun | None = None


class DueJob(msgspec.Struct, frozen=True, gc=False):
    """What a claim reads of a job whose next time has come within the look-ahead.

    Policies are raw texts: a row that holds nonsense must stop that job alone, not the claim. `pause_windows` are those
    that had not ended at `next_ms`, and perhaps others. `damage` says what the row holds that its columns cannot; what
    stands here instead means nothing.
    """

    id: JobId
    group_id: GroupId
    schedule_type: str
    schedule_conf: str
    time_zone: str | None
    anchor_ms: int | None
    misfire_strategy: str
    parameter: str
    next_ms: int
    valid_from_ms: int | None = None
    valid_until_ms: int | None = None
    route_strategy: str = RouteStrategy.FIRST
    version: int = 0
    pause_windows: tuple[PauseWindow, ...] = ()
    damage: str | None = None


class DispatchJob(msgspec.Struct, frozen=True, gc=False):
    """What take-off reads of a job: how its run is sent. `route_strategy` is a raw text, judged by the router.

    `script` is None for a job that runs a handler: nobody reads so large a column in vain. `damage` is as that of
    `DueJob`.
    """

    id: JobId
    group_id: GroupId
    handler: str
    route_strategy: str
    block_strategy: str
    timeout_s: int
    glue_type: str
    retry_count: int = 0
    run_limit: int | None = None
    run_limit_overflow: str | None = None
    uncertain_send: str | None = None
    script: DispatchScript | None = None
    damage: str | None = None
