"""What describing a cron expression needs in every language: which sets of values have a short name."""

from typing import Final

from jobwheel.schedule.base import FIRST_YEAR
from jobwheel.schedule.cron_days import ALL_DAYS, DayRule, MonthDays, WeekDays, bits, month_length
from jobwheel.schedule.cron_expression import CronExpression

# So many times of day are listed one by one.
_MOST_TIMES: Final = 6


def progression(values: list[int]) -> int | None:
    """The step of three or more values that lie equally far apart."""
    if len(values) < 3:
        return None
    step = values[1] - values[0]
    return step if values == list(range(values[0], values[-1] + 1, step)) else None


def round_step(values: list[int], size: int) -> int | None:
    """The step of values that go on equally over the end of their unit, as 0, 20, 40 do in an hour."""
    step = size // len(values)
    if len(values) < 2 or size % len(values) or values != list(range(values[0], size, step)):
        return None
    return step


def items(values: list[int], to: str, comma: str) -> list[str]:
    """The values as text, three or more in a row as `a to b`, a longer progression as one item `a, b, c … z`."""
    step = progression(values)
    if step is not None and step > 1 and len(values) > 4:
        return [f"{comma.join(str(value) for value in values[:3])} … {values[-1]}"]
    return [f"{run[0]}{to}{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs(values)]


def runs(values: list[int]) -> list[list[int]]:
    """The values cut into runs of three or more that follow each other, and single ones."""
    found: list[list[int]] = []
    for value in values:
        if found and value == found[-1][-1] + 1:
            found[-1].append(value)
        else:
            found.append([value])
    return [part for run in found for part in ([run] if len(run) > 2 else [[value] for value in run])]


def clock(hour: int, minute: int, second: int) -> str:
    """`02:30`, or `02:30:15` where the second is not 0."""
    return f"{hour:02}:{minute:02}" + (f":{second:02}" if second else "")


def times_of_day(expression: CronExpression) -> list[str]:
    """All times of one day, if they are few; else none."""
    seconds, minutes, hours = bits(expression.seconds), bits(expression.minutes), bits(expression.hours)
    if len(seconds) * len(minutes) * len(hours) > _MOST_TIMES:
        return []
    return [clock(hour, minute, second) for hour in hours for minute in minutes for second in seconds]


def are_all_days(days: DayRule) -> bool:
    """Whether every day of every month matches."""
    return days == MonthDays(ALL_DAYS)


def may_be_missing(expression: CronExpression) -> bool:
    """Whether a month may lack a day that the expression names."""
    days = expression.days
    if isinstance(days, WeekDays):
        return days.ordinal == 5
    if are_all_days(days):
        return False
    # 1970 was no leap year: February counts with 28 days.
    shortest = min(month_length(FIRST_YEAR, month) for month in bits(expression.months))
    return bool((days.days | days.near) >> (shortest + 1) or (days.from_end | days.near_from_end) >> shortest)
