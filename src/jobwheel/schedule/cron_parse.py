"""Reads cron expressions of Quartz's dialect, strictly: what Quartz would half understand is refused."""

import re
from dataclasses import dataclass
from typing import Final

from jobwheel.schedule.base import FIRST_YEAR, LAST_YEAR
from jobwheel.schedule.cron_days import ALL_DAYS, ALL_WEEKDAYS, LAST, DayRule, MonthDays, WeekDays
from jobwheel.schedule.cron_expression import CronExpression
from jobwheel.schedule.errors import ScheduleError

_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_VALUE: Final = r"(\d{1,4}|[A-Z]{3})"
_ITEM: Final = re.compile(rf"(?:(\*)|{_VALUE}(?:-{_VALUE})?)(?:/(\d{{1,4}}))?")
_MONTH_DAY: Final = re.compile(r"(?:L(?:-(\d{1,2}))?|(\d{1,2})(?=W))(W)?")
_WEEKDAY: Final = re.compile(rf"{_VALUE}(?:(L)|#(\d))")


@dataclass(frozen=True, slots=True)
class _Field:
    """What a field may hold.

    Attributes:
        name: what messages call it.
        lowest: its lowest value.
        highest: its highest value, which is also the longest step.
        names: names of its values, from the lowest on.
        wraps: whether a range may run over the end of the field.
        forms: for messages, what the field takes besides values, ranges and steps.
    """

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    wraps: bool = True
    forms: str = ""

    def error(self, problem: str) -> ScheduleError:
        return ScheduleError("schedule_conf", self.name, problem)

    @property
    def valid(self) -> str:
        numbers = f"{self.lowest}-{self.highest}"
        return f"{numbers} or {self.names[0]}-{self.names[-1]}" if self.names else numbers

    def value(self, text: str) -> int:
        if text in self.names:
            return self.lowest + self.names.index(text)
        if not text.isdigit() or not self.lowest <= int(text) <= self.highest:
            raise self.error(f"{text} is not in {self.valid}")
        return int(text)

    def step(self, text: str) -> int:
        step = int(text)
        if not 1 <= step <= self.highest:
            raise self.error(f"the step {text} is not in 1-{self.highest}")
        return step


_SECOND: Final = _Field("second", 0, 59)
_MINUTE: Final = _Field("minute", 0, 59)
_HOUR: Final = _Field("hour", 0, 23)
_DAY_OF_MONTH: Final = _Field("day-of-month", 1, 31, forms=", L, L-n, aW, LW, L-nW")
_MONTH: Final = _Field("month", 1, 12, _MONTHS)
_DAY_OF_WEEK: Final = _Field("day-of-week", 1, 7, _WEEKDAYS, forms=", aL, a#n")
_YEAR: Final = _Field("year", FIRST_YEAR, LAST_YEAR, wraps=False)
_FIELDS: Final = (_SECOND, _MINUTE, _HOUR, _DAY_OF_MONTH, _MONTH, _DAY_OF_WEEK, _YEAR)


def parse_cron(text: str) -> CronExpression:
    """The meaning of six or seven fields separated by white space.

    The dialect is Quartz's: see the table of fields in its documentation of cron triggers.

    Raises:
        ScheduleError: the message says which field is wrong and why (field `schedule_conf`).
    """
    texts = text.split()
    if len(texts) not in {6, 7}:
        raise _wrong_count(len(texts))
    for field, part in zip(_FIELDS, texts, strict=False):
        if not part.isascii():
            raise field.error(
                f"{part} has a character that is none of the plain letters, digits and , - * / ? # of cron"
            )
    second, minute, hour, day, month, weekday = (part.upper() for part in texts[:6])
    return CronExpression(
        seconds=_mask(_SECOND, second),
        minutes=_mask(_MINUTE, minute),
        hours=_mask(_HOUR, hour),
        days=_days(day, weekday),
        months=_mask(_MONTH, month),
        years=_mask(_YEAR, texts[6].upper() if len(texts) == 7 else "*") >> FIRST_YEAR,
        is_interval="*" in hour or "/" in hour,
    )


def _wrong_count(count: int) -> ScheduleError:
    names = " ".join(field.name for field in _FIELDS[:6])
    hint = "; a five-field expression needs a second in front and a ? in one of its day fields" if count == 5 else ""
    number = f"{count} field{'' if count == 1 else 's'}"
    return ScheduleError("schedule_conf", "cron", f"{number}, but 6 or 7 are needed: {names} [year]{hint}")


def _mask(field: _Field, text: str) -> int:
    mask = 0
    for item in text.split(","):
        mask |= _item_mask(field, item)
    return mask


def _item_mask(field: _Field, item: str) -> int:
    """The values of one item as bits: `*`, `a`, `a-b`, each with `/n` or without."""
    match = _ITEM.fullmatch(item)
    if match is None:
        raise _unreadable(field, item)
    star, first_text, last_text, step_text = match.groups()
    first = field.lowest if star else field.value(first_text)
    # Without an end, a star or a step runs to the end of the field.
    last = field.value(last_text) if last_text else field.highest if star or step_text else first
    step = field.step(step_text) if step_text else 1
    span = field.highest - field.lowest + 1
    if last < first:
        if not field.wraps:
            raise field.error(f"the range {item} ends before it begins, and years do not wrap")
        last += span
    return sum(1 << (field.lowest + (value - field.lowest) % span) for value in range(first, last + 1, step))


def _unreadable(field: _Field, item: str) -> ScheduleError:
    if not item:
        return field.error("an item of the list is empty")
    if item == "?":
        where = "stands alone, not in a list" if field.forms else "belongs to a day field; write * for every value"
        return field.error(f"? {where}")
    return field.error(
        f"{item} is not understood; values are {field.valid}, written a, a-b, a/n, a-b/n, */n{field.forms}"
    )


def _days(day: str, weekday: str) -> DayRule:
    if day == "?" and weekday == "?":
        raise _DAY_OF_WEEK.error("exactly one of day-of-month and day-of-week must be ?, but both are")
    if weekday == "?":
        return _month_days(day)
    if day == "?":
        return _week_days(weekday)
    # The items first: a message about the one that cannot be read helps more.
    _month_days(day)
    _week_days(weekday)
    problem = f"exactly one of day-of-month and day-of-week must be ?, but they are {day} and {weekday}"
    raise _DAY_OF_WEEK.error(problem)


def _month_days(text: str) -> MonthDays:
    days = from_end = near = near_from_end = 0
    for item in text.split(","):
        match = _MONTH_DAY.fullmatch(item)
        if match is None:
            days |= _item_mask(_DAY_OF_MONTH, item)
            continue
        back, day, is_near = match.groups()
        if day:
            near |= 1 << _DAY_OF_MONTH.value(day)
        elif is_near:
            near_from_end |= 1 << _days_back(item, back)
        else:
            from_end |= 1 << _days_back(item, back)
    # All days leave nothing for the rest to add.
    return MonthDays(ALL_DAYS) if days == ALL_DAYS else MonthDays(days, from_end, near, near_from_end)


def _days_back(item: str, back: str | None) -> int:
    if back and int(back) > 30:
        raise _DAY_OF_MONTH.error(f"{item} goes back {back} days, but 30 is the most")
    return int(back or 0)


def _week_days(text: str) -> DayRule:
    items = text.split(",")
    if len(items) > 1:
        for item in items:
            if item == "L" or _WEEKDAY.fullmatch(item):
                raise _DAY_OF_WEEK.error(f"{item} must stand alone, not in the list {text}")
    if text == "L":
        return WeekDays(1 << _WEEKDAYS.index("SAT"))
    match = _WEEKDAY.fullmatch(text)
    if match is None:
        days = _mask(_DAY_OF_WEEK, text) >> 1
        return MonthDays(ALL_DAYS) if days == ALL_WEEKDAYS else WeekDays(days)
    name, is_last, ordinal = match.groups()
    day = 1 << (_DAY_OF_WEEK.value(name) - 1)
    if is_last:
        return WeekDays(day, LAST)
    if not 1 <= int(ordinal) <= 5:
        raise _DAY_OF_WEEK.error(f"the {ordinal} of {text} is not in 1-5")
    return WeekDays(day, int(ordinal))
