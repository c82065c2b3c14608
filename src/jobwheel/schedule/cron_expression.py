"""A parsed cron expression, and the search for the next wall time that matches it."""

from dataclasses import dataclass
from datetime import date
from typing import Final

from jobwheel.schedule.base import FIRST_YEAR, LAST_YEAR, SECONDS_PER_DAY
from jobwheel.schedule.cron_days import DayRule, month_length
from jobwheel.schedule.cron_text import expression_text

_EPOCH_ORDINAL: Final = date(FIRST_YEAR, 1, 1).toordinal()
_LAST_DAY: Final = date(LAST_YEAR, 12, 31).toordinal() - _EPOCH_ORDINAL


def _first_bit(mask: int, lowest: int) -> int:
    """The first set bit from `lowest` on, or -1."""
    rest = mask >> lowest
    return lowest + (rest & -rest).bit_length() - 1 if rest else -1


@dataclass(frozen=True, slots=True)
class CronExpression:
    """What an expression means; equal meanings are equal, and printing gives an expression that parses to the same.

    Attributes:
        seconds: bits 0-59.
        minutes: bits 0-59.
        hours: bits 0-23.
        days: which days of a month.
        months: bits 1-12.
        years: bit 0 is 1970, bit 229 is 2199.
        is_interval: the hour field held `*` or `/`, so that a clock change does not move or merge fires.
    """

    seconds: int
    minutes: int
    hours: int
    days: DayRule
    months: int
    years: int
    is_interval: bool

    def __str__(self) -> str:
        return expression_text(self)

    def first_match(self, wall: int) -> int | None:
        """The first matching wall time at or after `wall` (see `zones`), or None before the year 2200."""
        day, second_of_day = divmod(max(wall, 0), SECONDS_PER_DAY)
        if day > _LAST_DAY:
            return None
        today = date.fromordinal(day + _EPOCH_ORDINAL)
        year, month = today.year, today.month
        days = self._days_of(year, month) >> today.day
        if days & 1:
            second = self._first_second(second_of_day)
            if second is not None:
                return day * SECONDS_PER_DAY + second
        later = _first_bit(days, 1)
        if later < 0:
            return self._first_after_month(year, month)
        return (day + later) * SECONDS_PER_DAY + self._first_second_of_day()

    def _days_of(self, year: int, month: int) -> int:
        if not (self.months >> month & 1 and self.years >> (year - FIRST_YEAR) & 1):
            return 0
        return self.days.in_month(date(year, month, 1).toordinal() % 7, month_length(year, month))

    def _first_after_month(self, year: int, month: int) -> int | None:
        """The first matching wall time in a month later than the one given."""
        while True:
            month = _first_bit(self.months, month + 1)
            if month < 0:
                year, month = year + 1, _first_bit(self.months, 1)
            year_bit = _first_bit(self.years, year - FIRST_YEAR)
            if year_bit < 0:
                return None
            if year_bit != year - FIRST_YEAR:
                year, month = year_bit + FIRST_YEAR, _first_bit(self.months, 1)
            days = self._days_of(year, month)
            if days:
                ordinal = date(year, month, _first_bit(days, 1)).toordinal()
                return (ordinal - _EPOCH_ORDINAL) * SECONDS_PER_DAY + self._first_second_of_day()

    def _first_second_of_day(self) -> int:
        first = self._first_second(0)
        assert first is not None
        return first

    def _first_second(self, second_of_day: int) -> int | None:
        """The first matching second of the day at or after `second_of_day`."""
        hour_now, rest = divmod(second_of_day, 3600)
        minute_now, second_now = divmod(rest, 60)
        hour = _first_bit(self.hours, hour_now)
        if hour == hour_now:
            minute = _first_bit(self.minutes, minute_now)
            if minute == minute_now:
                second = _first_bit(self.seconds, second_now)
                if second >= 0:
                    return hour * 3600 + minute * 60 + second
                minute = _first_bit(self.minutes, minute_now + 1)
            if minute >= 0:
                return hour * 3600 + minute * 60 + _first_bit(self.seconds, 0)
            hour = _first_bit(self.hours, hour_now + 1)
        if hour < 0:
            return None
        return hour * 3600 + _first_bit(self.minutes, 0) * 60 + _first_bit(self.seconds, 0)
