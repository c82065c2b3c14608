"""Managing jobs over the executors' API (dialect C): the requests, and the names that they have for what jobs hold."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from jobwheel.wire.codec import decode
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import Int32, Int64

FIELDS: Final[Mapping[str, str]] = {
    "group_id": "jobGroup",
    "name": "name",
    "author": "author",
    "alarm_email": "alarmEmail",
    "schedule_type": "scheduleType",
    "schedule_conf": "scheduleConf",
    "misfire_strategy": "misfireStrategy",
    "route_strategy": "executorRouteStrategy",
    "handler": "executorHandler",
    "parameter": "executorParam",
    "block_strategy": "executorBlockStrategy",
    "timeout_s": "executorTimeout",
    "retry_count": "executorFailRetryCount",
    "glue_type": "glueType",
    "glue_source": "glueSource",
    "glue_remark": "glueRemark",
}
"""The wire's names by ours."""

_ID: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_MOST_ID: Final = 2**31 - 1


class JobFields(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a job; None = nothing. Absent and null are the same, as everywhere on the wire."""

    group_id: Int32 | None = msgspec.field(name="jobGroup", default=None)
    name: str | None = None
    author: str | None = None
    alarm_email: str | None = msgspec.field(name="alarmEmail", default=None)
    schedule_type: str | None = msgspec.field(name="scheduleType", default=None)
    schedule_conf: str | None = msgspec.field(name="scheduleConf", default=None)
    misfire_strategy: str | None = msgspec.field(name="misfireStrategy", default=None)
    route_strategy: str | None = msgspec.field(name="executorRouteStrategy", default=None)
    handler: str | None = msgspec.field(name="executorHandler", default=None)
    parameter: str | None = msgspec.field(name="executorParam", default=None)
    block_strategy: str | None = msgspec.field(name="executorBlockStrategy", default=None)
    timeout_s: Int32 | None = msgspec.field(name="executorTimeout", default=None)
    retry_count: Int32 | None = msgspec.field(name="executorFailRetryCount", default=None)
    glue_type: str | None = msgspec.field(name="glueType", default=None)
    glue_source: str | None = msgspec.field(name="glueSource", default=None)
    glue_remark: str | None = msgspec.field(name="glueRemark", default=None)

    def given(self) -> dict[str, Any]:
        """What is said, by our names."""
        return {name: value for name in FIELDS if (value := getattr(self, name)) is not None}


class _Id(msgspec.Struct, frozen=True):
    # Replies give ids as texts, which clients send back as they are.
    id: Int64 | str


class _Trigger(_Id, frozen=True, kw_only=True):
    parameter: str | None = msgspec.field(name="executorParam", default=None)
    address_list: str | None = msgspec.field(name="addressList", default=None)


class TriggerJob(msgspec.Struct, frozen=True):
    """`triggerJob`: run a job now. `parameter` None = the job's own; no `addresses` = any of the group's."""

    job_id: int
    parameter: str | None
    addresses: tuple[str, ...]


def decode_job_fields(body: bytes) -> JobFields:
    """`addJob`.

    Raises:
        MalformedMessageError: names the field.
    """
    return decode(body, JobFields)


def decode_job_id(body: bytes) -> int:
    """`removeJob`, `startJob`, `stopJob`, and the job that `updateJob` is for.

    Raises:
        MalformedMessageError: names the field.
    """
    return _id_of(decode(body, _Id))


def decode_trigger_job(body: bytes) -> TriggerJob:
    """`triggerJob`.

    Raises:
        MalformedMessageError: names the field.
    """
    wanted = decode(body, _Trigger)
    addresses = (each.strip() for each in (wanted.address_list or "").split(","))
    return TriggerJob(_id_of(wanted), wanted.parameter, tuple(each for each in addresses if each))


def _id_of(request: _Id) -> int:
    if isinstance(request.id, str) and not _ID.fullmatch(request.id.strip()):
        raise MalformedMessageError("is not the id of a job", field="id")
    job_id = int(request.id)
    if not 1 <= job_id <= _MOST_ID:
        raise MalformedMessageError("is not the id of a job", field="id")
    return job_id
