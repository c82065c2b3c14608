"""Cron expressions in Chinese, in simplified and in traditional characters."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

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

_WEEKDAYS: Final = "日一二三四五六"
_ORDINALS: Final = {1: "第一个", 2: "第二个", 3: "第三个", 4: "第四个", 5: "第五个", LAST: "最后一个"}
# Every character of the words below that is written differently.
_TRADITIONAL: Final = str.maketrans("钟时个后过无从数周内", "鐘時個後過無從數週內")


def describe_zh_cn(expression: CronExpression) -> str:
    """`每月最后一天 02:30`."""
    suffix = "（无此日的月份跳过）" if may_be_missing(expression) else ""
    years, days = _years(expression), _days(expression)
    date = years + (" " if years and days[:1].isdigit() else "") + days
    time = _time(expression)
    if not time[0].isdigit():
        return f"{date}{time}{suffix}"
    day = "每天" if are_all_days(expression.days) else ""
    return f"{date}{day} {time}{suffix}"


def describe_zh_tw(expression: CronExpression) -> str:
    """`每月最後一天 02:30`."""
    return describe_zh_cn(expression).translate(_TRADITIONAL)


def _time(expression: CronExpression) -> str:
    seconds, minutes, hours = bits(expression.seconds), bits(expression.minutes), bits(expression.hours)
    if len(seconds) == len(minutes) == 1:
        hourly = _hourly(hours, minutes[0], seconds[0])
        if hourly:
            return hourly
    times = times_of_day(expression)
    if times:
        return "、".join(times)
    if seconds == [0]:
        frequency = _frequency(minutes, "分", "分钟")
        return f"{_hours(hours)}{frequency}" if frequency else f"{_of_hours(hours)}{_units(minutes, '分')}"
    moment = _frequency(seconds, "秒", "秒") or _units(seconds, "秒")
    if len(minutes) == 60:
        return f"{_hours(hours)}{'每分钟' if moment[0] == '第' else ''}{moment}"
    return f"{_of_hours(hours)}{_units(minutes, '分')}{'的' if moment[0] == '第' else '内'}{moment}"


def _hourly(hours: list[int], minute: int, second: int) -> str:
    """One time in each of three or more equally spaced hours, or nothing."""
    step = progression(hours)
    if step is None:
        return ""
    every = "每小时" if step == 1 else f"每 {step} 小时"
    first, last = clock(hours[0], minute, second), clock(hours[-1], minute, second)
    if round_step(hours, 24) is None:
        return f"{first} 至 {last} {every}"
    if first == "00:00":
        return every
    if step > 1:
        return f"从 {first} 起{every}"
    return f"每小时第 {minute} 分" + (f" {second} 秒" if second else "")


def _frequency(values: list[int], mark: str, unit: str) -> str:
    """`每 5 分钟`, if the values go round their unit equally."""
    step = round_step(values, 60)
    if step is None:
        return ""
    start = f"自第 {values[0]} {mark}起" if values[0] else ""
    return f"每{unit}" if step == 1 else f"{start}每 {step} {unit}"


def _hours(hours: list[int]) -> str:
    if len(hours) == 24:
        return ""
    if len(hours) == hours[-1] - hours[0] + 1:
        return f"{hours[0]:02}:00 至 {hours[-1]:02}:59 "
    return f"{_joined(hours)} 时内"


def _of_hours(hours: list[int]) -> str:
    return "每小时" if len(hours) == 24 else f"{_joined(hours)} 时"


def _units(values: list[int], mark: str) -> str:
    return f"第 {_joined(values)} {mark}"


def _days(expression: CronExpression) -> str:
    days = expression.days
    months = bits(expression.months)
    month = "" if len(months) == 12 else f"{_joined(months)} 月"
    if are_all_days(days):
        return month
    if isinstance(days, MonthDays):
        return f"{month or '每月'}{_month_days(days)}"
    if days.ordinal:
        return f"{month or '每月'}{_ORDINALS[days.ordinal]}周{_WEEKDAYS[bits(days.days)[0]]}"
    return f"{month}每{_week_days(days)}"


def _month_days(days: MonthDays) -> str:
    parts = [f" {_joined(bits(days.days))} 日"] if days.days else []
    parts += [_from_end(back) for back in bits(days.from_end)]
    parts += [f"最接近 {day} 日的工作日" for day in bits(days.near)]
    parts += [f"最接近{_from_end(back)}的工作日" if back else "最后一个工作日" for back in bits(days.near_from_end)]
    return "、".join(parts)


def _from_end(back: int) -> str:
    return f"倒数第 {back + 1} 天" if back else "最后一天"


def _week_days(days: WeekDays) -> str:
    # The week from Monday on, with Sunday as its seventh day.
    numbers = sorted((day - 1) % 7 + 1 for day in bits(days.days))
    names = [[f"周{_WEEKDAYS[number % 7]}" for number in run] for run in runs(numbers)]
    return "、".join(run[0] if len(run) == 1 else f"{run[0]}至{run[-1]}" for run in names)


def _years(expression: CronExpression) -> str:
    years = [bit + FIRST_YEAR for bit in bits(expression.years)]
    return "" if len(years) == LAST_YEAR - FIRST_YEAR + 1 else f"{_joined(years)} 年"


def _joined(values: list[int]) -> str:
    return "、".join(items(values, " 至 ", "、"))
