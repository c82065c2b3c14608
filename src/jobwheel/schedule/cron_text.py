"""Prints a parsed cron expression; parsing the text gives an equal expression."""

from enum import Enum
from typing import TYPE_CHECKING

from jobwheel.schedule.base import FIRST_YEAR, LAST_YEAR
from jobwheel.schedule.cron_days import LAST, DayRule, MonthDays, WeekDays, bits

if TYPE_CHECKING:
    from jobwheel.schedule.cron_expression import CronExpression


class Steps(Enum):
    """Whether a field may be written with `*` or `/`: in the hour field that decides how clock changes are met."""

    MAY = 0
    MUST = 1
    MUST_NOT = 2


def expression_text(expression: "CronExpression") -> str:
    """The expression in its shortest usual form; the year only where it says something."""
    hour_steps = Steps.MUST if expression.is_interval else Steps.MUST_NOT
    days, weekdays = _day_texts(expression.days)
    years = [bit + FIRST_YEAR for bit in bits(expression.years)]
    parts = [
        _field_text(bits(expression.seconds), 0, 59),
        _field_text(bits(expression.minutes), 0, 59),
        _field_text(bits(expression.hours), 0, 23, hour_steps),
        days,
        _field_text(bits(expression.months), 1, 12),
        weekdays,
        _field_text(years, FIRST_YEAR, LAST_YEAR),
    ]
    return " ".join(parts if parts[-1] != "*" else parts[:-1])


def _day_texts(days: DayRule) -> tuple[str, str]:
    if isinstance(days, WeekDays):
        return "?", _weekday_text(days)
    return _month_day_text(days), "?"


def _month_day_text(days: MonthDays) -> str:
    items = [_field_text(bits(days.days), 1, 31)] if days.days else []
    items += [_from_end_text(back) for back in bits(days.from_end)]
    items += [f"{day}W" for day in bits(days.near)]
    items += [f"{_from_end_text(back)}W" for back in bits(days.near_from_end)]
    return ",".join(items)


def _from_end_text(back: int) -> str:
    return f"L-{back}" if back else "L"


def _weekday_text(days: WeekDays) -> str:
    numbers = [bit + 1 for bit in bits(days.days)]
    if days.ordinal == LAST:
        return f"{numbers[0]}L"
    if days.ordinal:
        return f"{numbers[0]}#{days.ordinal}"
    return _field_text(numbers, 1, 7)


def _field_text(values: list[int], lowest: int, highest: int, steps: Steps = Steps.MAY) -> str:
    if steps is not Steps.MUST_NOT:
        if len(values) == highest - lowest + 1:
            return "*"
        stepped = _stepped_text(values, lowest, highest)
        if stepped is not None:
            return stepped
    items = _range_items(values)
    if steps is Steps.MUST:
        # A step of 1 changes nothing but keeps the field an interval.
        last = items[-1] if "-" in items[-1] else f"{items[-1]}-{items[-1]}"
        items[-1] = f"{last}/1"
    return ",".join(items)


def _stepped_text(values: list[int], lowest: int, highest: int) -> str | None:
    """`*/n`, `a/n` or `a-b/n`, if at least three values lie an equal step of 2 or more apart."""
    step = values[1] - values[0] if len(values) > 2 else 1
    if step == 1 or values != list(range(values[0], values[-1] + 1, step)):
        return None
    if values[-1] + step <= highest:
        return f"{values[0]}-{values[-1]}/{step}"
    return f"{'*' if values[0] == lowest else values[0]}/{step}"


def _range_items(values: list[int]) -> list[str]:
    """Single values, and ranges where three or more follow each other."""
    items: list[str] = []
    start = 0
    for index, value in enumerate(values):
        if index + 1 < len(values) and values[index + 1] == value + 1:
            continue
        run = values[start : index + 1]
        items += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(number) for number in run]
        start = index + 1
    return items
