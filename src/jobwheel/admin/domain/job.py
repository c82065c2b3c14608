"""A job: what to run, where, when and how."""

from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.policies import BlockStrategy, GlueType, MisfireStrategy, RouteStrategy
from jobwheel.schedule import ScheduleType


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What a person sets. `time_zone` None means the installation's; times are epoch milliseconds."""

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

    Policies are raw texts: a row that holds nonsense must stop that job alone, not the claim.
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


class DispatchJob(msgspec.Struct, frozen=True, gc=False):
    """What take-off reads of a job: how its run is sent. `route_strategy` is a raw text, judged by the router."""

    id: JobId
    group_id: GroupId
    handler: str
    route_strategy: str
    block_strategy: str
    timeout_s: int
    glue_type: str
