"""A job's fields as people give them: each checked, named when it is wrong."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeVar

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import JobSettings, PauseWindow
from jobwheel.admin.domain.policies import (
    BlockStrategy,
    GlueType,
    MisfireStrategy,
    RetryBackoff,
    RouteStrategy,
    RunLimitOverflow,
    UncertainSend,
)
from jobwheel.admin.domain.retries import MOST_RETRIES, MOST_RETRY_WAIT_S
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.job_alarms import read_alarm_email, read_alarms
from jobwheel.admin.services.texts import checked_text
from jobwheel.kernel.instants import instant_text
from jobwheel.schedule import ScheduleType

Choice = TypeVar("Choice", bound=StrEnum)

MOST_PARAMETER_BYTES: Final = 65_535
"""What a TEXT column of the smallest of the databases holds."""

MOST_PAUSE_WINDOWS: Final = 100
"""How many pause windows a job may have."""

MOST_RUN_LIMIT: Final = 10_000
"""The largest limit of runs under way at once."""

MOST_TIMEOUT_S: Final = 2**31 - 1
"""The longest time-out of a run, in seconds: what executors of every make can read."""

MOST_CHILDREN_TEXT: Final = 255
MOST_RETENTION_DAYS: Final = 36_500
"""The longest time for which runs are kept, if not for ever."""

_MOST_TAGS_TEXT: Final = 255
_MOST_REMARK: Final = 128


def read_changes(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `JobSettings` from fields of the API, whose JSON types have been checked.

    Raises:
        InvalidFieldError: a value that the field cannot hold.
    """
    return {name: _READERS[name](name, value) for name, value in given.items()}


def read_settings(given: Mapping[str, Any]) -> JobSettings:
    """The settings of a new job, with the defaults for what is not given.

    Raises:
        InvalidFieldError: a value that the field cannot hold, or a field that is missing.
    """
    for name in ("group_id", "name", "schedule_type"):
        if name not in given:
            raise InvalidFieldError(name, "is required")
    defaults = {"author": "", "schedule_conf": "", "handler": ""}
    settings = JobSettings(**{**defaults, **read_changes(given)})
    check_whole(settings)
    return settings


def check_whole(settings: JobSettings) -> None:
    """Check what one field alone cannot tell.

    Raises:
        InvalidFieldError: fields that do not go together.
    """
    if settings.glue_type is GlueType.BEAN and not settings.handler.strip():
        raise InvalidFieldError("handler", "is required for glue_type BEAN: the name of a handler of the executor")
    if settings.anchor_ms is not None and settings.schedule_type is not ScheduleType.FIX_RATE:
        raise InvalidFieldError("anchor_at", f"has a meaning for FIX_RATE alone, not for {settings.schedule_type}")
    most_s = settings.retry_most_s
    if most_s is not None and most_s < settings.retry_interval_s:
        told = f"{most_s} s is less than retry_interval_s, {settings.retry_interval_s} s"
        raise InvalidFieldError("retry_most_s", told)
    from_ms, until_ms = settings.valid_from_ms, settings.valid_until_ms
    if from_ms is not None and until_ms is not None and until_ms <= from_ms:
        raise InvalidFieldError("valid_until", f"{instant_text(until_ms)} is not after valid_from")


def checked_parameter(field: str, text: str) -> str:
    """A job's or a run's parameter.

    Raises:
        InvalidFieldError: it is too long, or holds a character that cannot be stored.
    """
    checked_text(field, text, MOST_PARAMETER_BYTES, lines=True)
    size = len(text.encode())
    if size > MOST_PARAMETER_BYTES:
        raise InvalidFieldError(field, f"has {size} bytes in UTF-8, at most {MOST_PARAMETER_BYTES} are allowed")
    return text


def read_choice(field: str, value: str, choices: type[Choice]) -> Choice:
    """One of the names of an enumeration.

    Raises:
        InvalidFieldError: none of them; names them all.
    """
    if value in set(choices):
        return choices(value)
    raise InvalidFieldError(field, f"{value[:50]!r} is not one of {', '.join(choices)}")


def _text(most: int, *, least: int = 0) -> Callable[[str, Any], str]:
    return lambda field, value: checked_text(field, value, most, least=least)


def _optional_text(most: int) -> Callable[[str, Any], str | None]:
    return lambda field, value: None if value is None else checked_text(field, value, most, least=1)


def _key(field: str, value: Any) -> str | None:
    key = _optional_text(128)(field, value)
    if key is not None and ("/" in key or key in (".", "..")):
        raise InvalidFieldError(field, f"{key!r} cannot be part of an address: it is a dot, or holds a slash")
    return key


def _choice(choices: type[Choice]) -> Callable[[str, Any], Choice]:
    return lambda field, value: read_choice(field, value, choices)


def _retries(field: str, value: Any) -> int:
    if not 0 <= value <= MOST_RETRIES:
        raise InvalidFieldError(field, f"{value} is not from 0 (none) to {MOST_RETRIES}")
    count: int = value
    return count


def _retry_interval(field: str, value: Any) -> int:
    if not 0 <= value <= MOST_RETRY_WAIT_S:
        raise InvalidFieldError(field, f"{value} is not from 0 (at once) to {MOST_RETRY_WAIT_S} seconds")
    seconds: int = value
    return seconds


def _retry_most(field: str, value: Any) -> int | None:
    if value is not None and not 1 <= value <= MOST_RETRY_WAIT_S:
        told = f"{value} is not from 1 to {MOST_RETRY_WAIT_S} seconds; null means {MOST_RETRY_WAIT_S}"
        raise InvalidFieldError(field, told)
    seconds: int | None = value
    return seconds


def _timeout(field: str, value: Any) -> int:
    if not 0 <= value <= MOST_TIMEOUT_S:
        raise InvalidFieldError(field, f"{value} is not from 0 (none) to {MOST_TIMEOUT_S} seconds")
    seconds: int = value
    return seconds


def _limit(field: str, value: Any) -> int | None:
    if value is not None and not 1 <= value <= MOST_RUN_LIMIT:
        raise InvalidFieldError(field, f"{value} is not from 1 to {MOST_RUN_LIMIT}; null means no limit")
    limit: int | None = value
    return limit


def _children(field: str, value: Sequence[int]) -> tuple[JobId, ...]:
    children = tuple(JobId(each) for each in dict.fromkeys(value))
    size = len(",".join(str(each) for each in children))
    if size > MOST_CHILDREN_TEXT:
        told = f"has {len(children)} jobs, whose ids take {size} characters with commas; {MOST_CHILDREN_TEXT} have room"
        raise InvalidFieldError(field, told)
    return children


def _retention(field: str, value: Any) -> int | None:
    if value is not None and not 0 <= value <= MOST_RETENTION_DAYS:
        problem = f"{value} is not from 1 to {MOST_RETENTION_DAYS} days; 0 keeps runs for ever"
        raise InvalidFieldError(field, f"{problem}, null as long as the admin's setting says")
    days: int | None = value
    return days


def _tags(field: str, value: Any) -> tuple[str, ...]:
    tags = []
    for item in value:
        tag = checked_text(field, item, _MOST_TAGS_TEXT, least=1).strip()
        if "," in tag:
            raise InvalidFieldError(field, f"{tag!r} holds a comma, which separates tags")
        if tag not in tags:
            tags.append(tag)
    checked_text(field, ",".join(tags), _MOST_TAGS_TEXT)
    return tuple(tags)


def _pause_windows(field: str, value: Sequence[PauseWindow]) -> tuple[PauseWindow, ...]:
    if len(value) > MOST_PAUSE_WINDOWS:
        raise InvalidFieldError(field, f"has {len(value)} windows, at most {MOST_PAUSE_WINDOWS} are allowed")
    for at, window in enumerate(value):
        checked_text(f"{field}[{at}].remark", window.remark, _MOST_REMARK)
        if window.until_ms <= window.from_ms:
            raise InvalidFieldError(f"{field}[{at}].until", f"{instant_text(window.until_ms)} is not after its from")
    return tuple(sorted(value))


_READERS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "group_id": lambda _, value: GroupId(value),
    "name": _text(255, least=1),
    "author": _text(64),
    "alarm_email": read_alarm_email,
    "schedule_type": _choice(ScheduleType),
    "schedule_conf": _text(128),
    "time_zone": _optional_text(64),
    "anchor_ms": lambda _, value: value,
    "misfire_strategy": _choice(MisfireStrategy),
    "route_strategy": _choice(RouteStrategy),
    "handler": _text(255),
    "parameter": checked_parameter,
    "block_strategy": _choice(BlockStrategy),
    "timeout_s": _timeout,
    "retry_count": _retries,
    "retry_interval_s": _retry_interval,
    "retry_backoff": _choice(RetryBackoff),
    "retry_most_s": _retry_most,
    "uncertain_send": _choice(UncertainSend),
    "glue_type": _choice(GlueType),
    "child_job_ids": _children,
    "key": _key,
    "tags": _tags,
    "valid_from_ms": lambda _, value: value,
    "valid_until_ms": lambda _, value: value,
    "pause_windows": _pause_windows,
    "alarms": read_alarms,
    "run_limit": _limit,
    "run_limit_overflow": _choice(RunLimitOverflow),
    "retention_days": _retention,
}
