"""What every schedule can do, and the names of the kinds."""

from enum import StrEnum
from typing import Final, Protocol

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
MS_PER_SECOND: Final = 1000
SECONDS_PER_DAY: Final = 86_400


class ScheduleType(StrEnum):
    """How a job's instants are given; the values are the ones stored and typed."""

    NONE = "NONE"
    CRON = "CRON"
    FIX_RATE = "FIX_RATE"
    FIX_DELAY = "FIX_DELAY"
    ONCE = "ONCE"


class Language(StrEnum):
    """The languages that schedules are described in."""

    EN = "en"
    ZH_CN = "zh-CN"
    ZH_TW = "zh-TW"


class Schedule(Protocol):
    """When a job runs: pure arithmetic, without a clock; equal settings make equal schedules."""

    def next_after(self, base_ms: int) -> int | None:
        """The first instant strictly after `base_ms`, both in epoch milliseconds; None = never again."""
        ...

    def describe(self, language: Language) -> str:
        """The schedule in words, as part of a sentence: no capital, no full stop, without the time zone of a cron."""
        ...
