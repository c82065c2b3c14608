"""The messages of both APIs, free of dialects. The wire's camelCase names stay in this package."""

from enum import StrEnum

import msgspec

SUCCESS = 200
FAILURE = 500
TIMED_OUT = 502

TOKEN_HEADER = "XXL-JOB-ACCESS-TOKEN"  # noqa: S105 - the name of the header, not a token
APP_NAME_HEADER = "XXL-JOB-APPNAME"
CONTENT_TYPE = "application/json;charset=UTF-8"

WRONG_TOKEN_MESSAGE = "The access token is wrong."  # noqa: S105 - the reply that the protocol fixes

MAX_BODY_BYTES = 10 * 1024 * 1024


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

    log_id: int
    handle_msg: str | None = None


class TriggerRequest(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`/run` and `/trigger`: run this job now.

    `executor_timeout` is in seconds, 0 = none; `log_date_time`, `glue_updatetime` and `scheduled_time` are epoch
    milliseconds. The fields from `scheduled_time` on are extensions of ours, sent only when they are set; the others
    are always sent, since executors in other languages may count on them.
    """

    job_id: int
    log_id: int
    executor_handler: str | None = None
    executor_params: str | None = None
    executor_block_strategy: str | None = None
    executor_timeout: int = 0
    log_date_time: int = 0
    glue_type: str | None = None
    glue_source: str | None = None
    glue_updatetime: int = 0
    broadcast_index: int = 0
    broadcast_total: int = 0
    scheduled_time: int | msgspec.UnsetType = msgspec.UNSET
    trigger_type: str | msgspec.UnsetType = msgspec.UNSET
    attempt: int | msgspec.UnsetType = msgspec.UNSET
    resend: bool | msgspec.UnsetType = msgspec.UNSET
    instance: str | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET


class JobQuery(msgspec.Struct, frozen=True, rename="camel"):
    """`/idleBeat` and `/kill`: the job that is meant."""

    job_id: int


class LogQuery(msgspec.Struct, frozen=True):
    """`/log`: lines of one run's log from `from_line` (counted from 1) on."""

    log_id: int
    log_date_time: int
    from_line: int = 1


class LogPage(msgspec.Struct, frozen=True):
    """The answer to a `LogQuery`. `to_line` below `from_line` means nothing new."""

    from_line: int = msgspec.field(name="fromLineNum")
    to_line: int = msgspec.field(name="toLineNum")
    content: str | None = msgspec.field(name="logContent")
    is_end: bool = msgspec.field(name="isEnd")


class Features(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What an executor of ours can do, sent with each registration."""

    instance: str
    version: str = ""
    batch: bool = False
    kill_by_log: bool = False
    status: bool = False
    draining: bool = False
    running: int = 0
    queued: int = 0
    spooled: int = 0


class RegistryRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """`registry` and `registryRemove`: an address of the app name `registry_key`."""

    registry_group: str
    registry_key: str
    registry_value: str
    features: Features | None = None


class Result(msgspec.Struct, frozen=True):
    """The outcome of one run, as a callback carries it."""

    log_id: int
    log_date_time: int
    code: int
    message: str | None = None


class Envelope(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply to every request; HTTP's own status is always 200.

    Writers put the value into both `content` and `data`; readers take either (`value`).
    """

    code: int
    msg: str | None = None
    content: msgspec.Raw | None = None
    data: msgspec.Raw | None = None
    instance: str | None = None
    reason: str | None = None

    @property
    def ok(self) -> bool:
        return self.code == SUCCESS
