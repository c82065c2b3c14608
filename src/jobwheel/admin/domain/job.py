"""A job: what to run, where, when and how."""

from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.policies import BlockStrategy, GlueType, MisfireStrategy, RouteStrategy, RunLimitOverflow
from jobwheel.admin.domain.script import DispatchScript
from jobwheel.schedule import ScheduleType, Window, closed_times


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
    the whole cluster; None = as many as come.
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


class DueJob(msgspec.Struct, frozen=True, gc=False):
    """What a claim reads of a job whose next time has come within the look-ahead.

    Policies are raw texts: a row that holds nonsense must stop that job alone, not the claim. `pause_windows` are those
    that had not ended at `next_ms`, and perhaps others.
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
    pause_windows: tuple[PauseWindow, ...] = ()


class DispatchJob(msgspec.Struct, frozen=True, gc=False):
    """What take-off reads of a job: how its run is sent. `route_strategy` is a raw text, judged by the router.

    `script` is None for a job that runs a handler: nobody reads so large a column in vain.
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
    script: DispatchScript | None = None
