"""The two ways in which a cron expression names days; each answers with the days of one month as a bit mask.

Bit d of a mask of days stands for day d of the month (bit 0 is never set). Weekdays count from 0 = Sunday.
"""

from dataclasses import dataclass
from typing import Final

LAST: Final = -1
SATURDAY: Final = 6
SUNDAY: Final = 0
ALL_DAYS: Final = (1 << 32) - 2
ALL_WEEKDAYS: Final = (1 << 7) - 1
# One bit for each week of a month: times a mask of weekdays it gives that mask again and again.
_WEEKS: Final = sum(1 << (7 * week) for week in range(6))


def bits(mask: int) -> list[int]:
    """The numbers of the bits that are set, lowest first."""
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]


def month_length(year: int, month: int) -> int:
    """How many days the month (1-12) has."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in {4, 6, 9, 11} else 31


def nearest_weekday(day: int, first_weekday: int, length: int) -> int:
    """The day from Monday to Friday nearest to `day`, in the same month (`15W`)."""
    weekday = (first_weekday + day - 1) % 7
    if weekday == SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == SUNDAY:
        return day + 1 if day < length else day - 2
    return day


@dataclass(frozen=True, slots=True)
class MonthDays:
    """Days by their number in the month.

    Attributes:
        days: plain days, bits 1-31.
        from_end: bit n for `L-n`, bit 0 for `L`.
        near: bit d for `dW`.
        near_from_end: bit n for `L-nW`, bit 0 for `LW`.
    """

    days: int = 0
    from_end: int = 0
    near: int = 0
    near_from_end: int = 0

    def in_month(self, first_weekday: int, length: int) -> int:
        """The days that match in a month of `length` days that begins on `first_weekday`."""
        mask = self.days & ((2 << length) - 1)
        if self.from_end:
            for back in bits(self.from_end):
                if back < length:
                    mask |= 1 << (length - back)
        if self.near or self.near_from_end:
            targets = bits(self.near) + [length - back for back in bits(self.near_from_end)]
            for day in targets:
                if 1 <= day <= length:
                    mask |= 1 << nearest_weekday(day, first_weekday, length)
        return mask


@dataclass(frozen=True, slots=True)
class WeekDays:
    """Days by their weekday.

    Attributes:
        days: bits 0 (Sunday) to 6.
        ordinal: 0 = each such day; 1-5 = only the n-th in the month (`6#3`); LAST = only the last (`6L`). Other than
            0 goes with one weekday alone.
    """

    days: int
    ordinal: int = 0

    def in_month(self, first_weekday: int, length: int) -> int:
        """The days that match in a month of `length` days that begins on `first_weekday`."""
        mask = ((self.days * _WEEKS) >> first_weekday << 1) & ((2 << length) - 1)
        if self.ordinal == 0:
            return mask
        matching = bits(mask)
        if self.ordinal == LAST:
            return 1 << matching[-1]
        return 1 << matching[self.ordinal - 1] if self.ordinal <= len(matching) else 0


DayRule = MonthDays | WeekDays
