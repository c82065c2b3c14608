"""What a job's people ask to be told of, as they give it."""

from collections.abc import Sequence
from typing import Any, Final

from jobwheel.admin.alarms.settings import read_emails
from jobwheel.admin.domain.alarm import BY_WISH, AlarmChannel, AlarmFailures, JobAlarms
from jobwheel.admin.domain.ids import ChannelId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.texts import checked_text

_MOST_CHANNELS: Final = 20
_MOST_S: Final = 31 * 24 * 3600
_MOST_EMAIL: Final = 255
_MOST_OPEN_RUNS: Final = 1_000_000


def read_alarms(_: str, value: Any) -> JobAlarms:
    """The fields of `alarm_settings`, whose JSON types have been checked.

    Raises:
        InvalidFieldError: a value that the field cannot hold.
    """
    field = "alarm_settings"
    channel_ids = tuple(dict.fromkeys(ChannelId(each) for each in value["channel_ids"]))
    if len(channel_ids) > _MOST_CHANNELS:
        raise InvalidFieldError(f"{field}.channel_ids", f"has more than {_MOST_CHANNELS} channels")
    if value["failures"] not in set(AlarmFailures):
        problem = f"{value['failures'][:50]!r} is not one of {', '.join(AlarmFailures)}"
        raise InvalidFieldError(f"{field}.failures", problem)
    return JobAlarms(
        channel_ids,
        AlarmFailures(value["failures"]),
        tuple(dict.fromkeys(_outcome(f"{field}.also[{at}]", each) for at, each in enumerate(value["also"]))),
        value["success_after_failure"],
        _limit(f"{field}.late_start_s", value["late_start_s"], _MOST_S),
        _limit(f"{field}.long_run_s", value["long_run_s"], _MOST_S),
        _limit(f"{field}.most_open_runs", value["most_open_runs"], _MOST_OPEN_RUNS),
    )


def check_channels(alarms: JobAlarms, channels: Sequence[AlarmChannel]) -> None:
    """See whether the channels that a job names are there.

    Raises:
        InvalidFieldError: one is not; names those that are.
    """
    known = {each.id: each.name for each in channels}
    for each in alarms.channel_ids:
        if each not in known:
            there = ", ".join(f"{channel_id} ({name})" for channel_id, name in known.items()) or "none"
            raise InvalidFieldError(
                "alarm_settings.channel_ids", f"there is no alarm channel {each}; there are {there}"
            )


def read_alarm_email(field: str, value: Any) -> str:
    """Addresses with commas between them.

    Raises:
        InvalidFieldError: it is too long, or holds something that is no address.
    """
    text = checked_text(field, value, _MOST_EMAIL)
    for part in (part.strip() for part in text.replace(";", ",").split(",")):
        if part and read_emails(part) != (part,):
            raise InvalidFieldError(field, f"{part[:100]!r} is not an e-mail address such as ops@example.com")
    return text


def _outcome(field: str, text: str) -> Outcome:
    for each in BY_WISH:
        if text == each.value:
            return each
    raise InvalidFieldError(field, f"{text[:50]!r} is not one of {', '.join(BY_WISH)}")


def _limit(field: str, value: int | None, most: int) -> int | None:
    if value is not None and not 1 <= value <= most:
        raise InvalidFieldError(field, f"{value} is not from 1 to {most}; null means that nobody is told")
    return value
