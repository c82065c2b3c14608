"""Schedules that repeat after a number of seconds."""

from dataclasses import dataclass
from typing import Final

from jobwheel.schedule.base import MS_PER_SECOND, SECONDS_PER_DAY, Language
from jobwheel.schedule.errors import ScheduleError
from jobwheel.schedule.words_interval import describe_delay, describe_rate

# Ten years of the longest kind, with three leap days: however ten years are reckoned, they are allowed.
MOST_INTERVAL_S: Final = 3653 * SECONDS_PER_DAY


@dataclass(frozen=True, slots=True)
class FixRateSchedule:
    """Fires at the anchor plus 1, 2, 3 … intervals, whatever the runs do.

    Attributes:
        interval_s: whole seconds, 1 or more.
        anchor_ms: epoch milliseconds; None before the first start: each base then counts as the moment of the start,
            cut to whole seconds.
    """

    interval_s: int
    anchor_ms: int | None

    def next_after(self, base_ms: int) -> int:
        """See `Schedule.next_after`; there is always a next one."""
        interval_ms = self.interval_s * MS_PER_SECOND
        anchor_ms = base_ms // MS_PER_SECOND * MS_PER_SECOND if self.anchor_ms is None else self.anchor_ms
        return anchor_ms + max(1, (base_ms - anchor_ms) // interval_ms + 1) * interval_ms

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`."""
        return describe_rate(self.interval_s, language)


@dataclass(frozen=True, slots=True)
class FixDelaySchedule:
    """Fires `interval_s` after the end of the last run; the base of `next_after` is that end, or the start of the job.

    A row of instants (preview, count) is what there would be if each run ended at once.
    """

    interval_s: int

    def next_after(self, base_ms: int) -> int:
        """See `Schedule.next_after`; there is always a next one."""
        return base_ms + self.interval_s * MS_PER_SECOND

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`."""
        return describe_delay(self.interval_s, language)


def parse_interval(text: str) -> int:
    """Whole seconds from 1 to `MOST_INTERVAL_S`.

    Raises:
        ScheduleError: anything else (field `schedule_conf`).
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        raise ScheduleError("schedule_conf", "interval", f"{text!r} is not a whole number of seconds")
    # The length comes first: Python refuses to read numbers of thousands of digits.
    if len(digits) > 20 or not 1 <= int(digits) <= MOST_INTERVAL_S:
        shown = digits if len(digits) <= 20 else f"{digits[:20]}…"
        problem = f"{shown} is not in 1-{MOST_INTERVAL_S} seconds (ten years)"
        raise ScheduleError("schedule_conf", "interval", problem)
    return int(digits)
