"""The messages of both APIs, free of dialects. The wire's camelCase names stay in this package."""

from enum import StrEnum
from typing import Annotated

import msgspec

SUCCESS = 200
FAILURE = 500
TIMED_OUT = 502

TOKEN_HEADER = "XXL-JOB-ACCESS-TOKEN"  # noqa: S105 - the name of the header, not a token
APP_NAME_HEADER = "XXL-JOB-APPNAME"
CONTENT_TYPE = "application/json;charset=UTF-8"

WRONG_TOKEN_MESSAGE = "The access token is wrong."  # noqa: S105 - the reply that the protocol fixes

MAX_BODY_BYTES = 10 * 1024 * 1024

MOST_ASKED = 10_000
"""Of how many runs one question for their status may be."""

MOST_INSTANCE = 36
"""How long the id of an executor's process may be: that of a UUID."""


# What the peers' languages and every database can hold: a larger number must fail here, not where it is stored.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class Dialect(StrEnum):
    """What a peer speaks: A (2.2), B (2.3 to 3.4), C (3.5 and later)."""

    A = "A"
    B = "B"
    C = "C"


class Reason(StrEnum):
    """Why an executor of ours refused a run."""

    REPEATED = "repeated"
    INSTANCE = "instance"
    STOPPING = "stopping"
    BLOCKED = "blocked"
    FULL = "full"
    UNKNOWN_HANDLER = "unknown_handler"


class Parent(msgspec.Struct, frozen=True, rename="camel"):
    """What a child run may know of its parent."""

    log_id: Int64
    handle_msg: str | None = None


class TriggerRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`/run` and `/trigger`: run this job now.

    `executor_timeout` is in seconds, 0 = none; `log_date_time`, `glue_updatetime` and `scheduled_time` are epoch
    milliseconds. The fields from `scheduled_time` on are extensions of ours, sent only when they are set; the others
    are always sent, since executors in other languages may count on them.
    """

    job_id: Int64
    log_id: Int64
    executor_handler: str | None = None
    executor_params: str | None = None
    executor_block_strategy: str | None = None
    executor_timeout: Int32 = 0
    log_date_time: Int64 = 0
    glue_type: str | None = None
    glue_source: str | None = None
    glue_updatetime: Int64 = 0
    broadcast_index: Int32 = 0
    broadcast_total: Int32 = 0
    scheduled_time: Int64 | msgspec.UnsetType = msgspec.UNSET
    trigger_type: str | msgspec.UnsetType = msgspec.UNSET
    attempt: Int32 | msgspec.UnsetType = msgspec.UNSET
    resend: bool | msgspec.UnsetType = msgspec.UNSET
    instance: str | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET


class JobQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`/idleBeat`: the job that is meant."""

    job_id: Int64


class KillRequest(msgspec.Struct, frozen=True, rename="camel"):
    """`/kill`: end every run of the job that is here, or, with a `log_id`, that run alone."""

    job_id: Int64
    log_id: Int64 | msgspec.UnsetType = msgspec.UNSET


class RunStatus(StrEnum):
    """Where a run is, as its executor sees it."""

    QUEUED = "queued"
    RUNNING = "running"
    REPORTING = "reporting"
    UNKNOWN = "unknown"


class StatusQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`/runStatus`: the runs that are asked about. The answer maps each id to its `RunStatus`."""

    log_ids: Annotated[list[Int64], msgspec.Meta(max_length=MOST_ASKED)]


class LogQuery(msgspec.Struct, frozen=True):
    """`/log`: lines of one run's log from `from_line` (counted from 1) on."""

    log_id: Int64
    log_date_time: Int64
    from_line: Int64 = 1


class LogPage(msgspec.Struct, frozen=True):
    """The answer to a `LogQuery`. `to_line` below `from_line` means nothing new."""

    from_line: Int64 = msgspec.field(name="fromLineNum")
    to_line: Int64 = msgspec.field(name="toLineNum")
    content: str | None = msgspec.field(name="logContent")
    is_end: bool = msgspec.field(name="isEnd")


class Features(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an executor of ours can do and what it has to do, sent with each registration.

    `abandoned` counts the threads of runs that were reported as ended although nothing could end them.
    """

    instance: str
    version: str = ""
    batch: bool = False
    kill_by_log: bool = False
    status: bool = False
    draining: bool = False
    running: Int32 = 0
    queued: Int32 = 0
    spooled: Int32 = 0
    abandoned: Int32 = 0


class AdminFeatures(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an admin of ours says in its answer to a registration.

    `progress`: it takes the progress of runs. `drain`: this executor is to take no new runs until it is told otherwise.
    """

    progress: bool = False
    drain: bool = False


class RegistryReply(msgspec.Struct, frozen=True):
    """The value of the answer to a registration with features."""

    features: AdminFeatures


class Progress(msgspec.Struct, frozen=True, rename="camel"):
    """How far a run is: a fraction from 0 to 1, and words."""

    log_id: Int64
    fraction: float
    text: str = ""


class RegistryRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """`registry` and `registryRemove`: an address of the app name `registry_key`."""

    registry_group: str
    registry_key: str
    registry_value: str
    features: Features | None = None


class Result(msgspec.Struct, frozen=True):
    """The outcome of one run, as a callback carries it."""

    log_id: Int64
    log_date_time: Int64
    code: Int32
    message: str | None = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to every request; HTTP's own status is always 200.

    Writers put the value into both `content` and `data`; readers take either (`codec.envelope_value`). Empty means
    absent.
    """

    code: Int32
    msg: str | None = None
    content: msgspec.Raw = msgspec.Raw()
    data: msgspec.Raw = msgspec.Raw()
    instance: str | None = None
    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.code == SUCCESS
