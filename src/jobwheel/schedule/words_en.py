"""Cron expressions in English."""

from typing import Final

from jobwheel.schedule.base import FIRST_YEAR, LAST_YEAR
from jobwheel.schedule.cron_days import LAST, MonthDays, WeekDays, bits
from jobwheel.schedule.cron_expression import CronExpression
from jobwheel.schedule.words_shape import (
    are_all_days,
    clock,
    items,
    may_be_missing,
    progression,
    round_step,
    runs,
    times_of_day,
)

_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_ORDINALS: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", LAST: "last"}
_MONDAY_TO_FRIDAY: Final = 0b0111110
_WEEKEND: Final = 0b1000001


def describe_en(expression: CronExpression) -> str:
    """`at 02:30 on the last day of every month`."""
    return _time(expression) + _days(expression) + _years(expression)


def _time(expression: CronExpression) -> str:
    seconds, minutes, hours = bits(expression.seconds), bits(expression.minutes), bits(expression.hours)
    if len(seconds) == len(minutes) == 1:
        hourly = _hourly(hours, minutes[0], seconds[0])
        if hourly:
            return hourly
    times = times_of_day(expression)
    if times:
        return f"at {_joined(times)}" + (" every day" if are_all_days(expression.days) else "")
    if seconds == [0]:
        frequency = _frequency(minutes, "minute")
        return f"{frequency}{_hours(hours)}" if frequency else f"at {_units(minutes, 'minute')}{_of_hours(hours)}"
    frequency = _frequency(seconds, "second")
    if len(minutes) == 60:
        moment = frequency or f"at {_units(seconds, 'second')} of every minute"
        return f"{moment}{_hours(hours)}"
    lead = f"{frequency} in" if frequency else f"at {_units(seconds, 'second')} of"
    return f"{lead} {_units(minutes, 'minute')}{_of_hours(hours)}"


def _hourly(hours: list[int], minute: int, second: int) -> str:
    """One time in each of three or more equally spaced hours, or nothing."""
    step = progression(hours)
    if step is None:
        return ""
    every = "every hour" if step == 1 else f"every {step} hours"
    first, last = clock(hours[0], minute, second), clock(hours[-1], minute, second)
    if round_step(hours, 24) is None:
        return f"{every} from {first} to {last}"
    if first == "00:00":
        return every
    if step > 1:
        return f"{every} from {first}"
    return f"every hour at minute {minute}" + (f", second {second}" if second else "")


def _frequency(values: list[int], unit: str) -> str:
    """`every 5 minutes`, if the values go round their unit equally."""
    step = round_step(values, 60)
    if step is None:
        return ""
    start = f" from {unit} {values[0]}" if values[0] else ""
    return f"every {unit}" if step == 1 else f"every {step} {unit}s{start}"


def _hours(hours: list[int]) -> str:
    if len(hours) == 24:
        return ""
    if len(hours) == hours[-1] - hours[0] + 1:
        return f" between {hours[0]:02}:00 and {hours[-1]:02}:59"
    return f" in {_units(hours, 'hour')}"


def _of_hours(hours: list[int]) -> str:
    return " of every hour" if len(hours) == 24 else f" of {_units(hours, 'hour')}"


def _units(values: list[int], unit: str) -> str:
    return f"{unit}{'s' if len(values) > 1 else ''} {_joined(items(values, ' to ', ', '))}"


def _days(expression: CronExpression) -> str:
    days = expression.days
    months = None if expression.months == 0b1111111111110 else _months(bits(expression.months))
    if are_all_days(days):
        return f" in {months}" if months else ""
    suffix = ", where there is such a day" if may_be_missing(expression) else ""
    of_months = f" of {months or 'every month'}{suffix}"
    if isinstance(days, MonthDays):
        return f" on {_joined(_month_days(days))}{of_months}"
    if days.ordinal:
        return f" on the {_ORDINALS[days.ordinal]} {_WEEKDAYS[bits(days.days)[0]]}{of_months}"
    return f" on {_week_days(days)}" + (f" in {months}" if months else "")


def _month_days(days: MonthDays) -> list[str]:
    parts = [_units(bits(days.days), "day")] if days.days else []
    parts += [_from_end(back) for back in bits(days.from_end)]
    parts += [f"the weekday nearest to day {day}" for day in bits(days.near)]
    parts += [
        f"the weekday nearest to {_from_end(back)}" if back else "the last weekday" for back in bits(days.near_from_end)
    ]
    return parts


def _from_end(back: int) -> str:
    if back == 0:
        return "the last day"
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(back % 10 if back // 10 != 1 else 0, "th")
    return f"the {back}{suffix} day before the last day"


def _week_days(days: WeekDays) -> str:
    if days.days == _MONDAY_TO_FRIDAY:
        return "weekdays (Mon\u2013Fri)"
    if days.days == _WEEKEND:
        return "weekends (Sat and Sun)"
    # The week as people list it, from Monday on.
    numbers = sorted(bits(days.days), key=lambda day: (day - 1) % 7)
    return _joined([f"{_WEEKDAYS[number]}s" for number in numbers])


def _months(months: list[int]) -> str:
    return _joined(
        [_MONTHS[run[0] - 1] + (f" to {_MONTHS[run[-1] - 1]}" if len(run) > 1 else "") for run in runs(months)]
    )


def _years(expression: CronExpression) -> str:
    years = [bit + FIRST_YEAR for bit in bits(expression.years)]
    if len(years) == LAST_YEAR - FIRST_YEAR + 1:
        return ""
    return f", in {_joined(items(years, ' to ', ', '))}"


def _joined(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
