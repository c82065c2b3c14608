"""Cron expressions together with what they mean, worked out without the parser."""

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

from hypothesis import strategies as st

DayTest = Callable[[date], bool]
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@dataclass(frozen=True)
class FieldCase:
    text: str
    values: frozenset[int]


@dataclass(frozen=True)
class DayCase:
    """The two day fields, and whether a date matches them."""

    month_day: str
    week_day: str
    test: DayTest

    def __repr__(self) -> str:
        return f"DayCase({self.month_day} {self.week_day})"


@st.composite
def items(draw: st.DrawFn, lowest: int, highest: int, names: tuple[str, ...] = (), *, wraps: bool = True) -> FieldCase:
    """One item of a list: `*`, `a`, `a-b`, each with a step or without."""

    def shown(value: int) -> str:
        name = names[value - lowest] if names else ""
        return draw(st.sampled_from([str(value), name, name.lower()])) if name else str(value)

    kind = draw(st.sampled_from(["*", "a", "a-b"]))
    step = draw(st.none() | st.integers(1, min(highest, 40)))
    first = lowest if kind == "*" else draw(st.integers(lowest, highest))
    if kind == "a-b":
        last = draw(st.integers(lowest if wraps else first, highest))
        text = f"{shown(first)}-{shown(last)}"
    else:
        last = highest if kind == "*" or step else first
        text = "*" if kind == "*" else shown(first)
    values = [first]
    while values[-1] != last:
        values.append(values[-1] + 1 if values[-1] < highest else lowest)
    return FieldCase(text + (f"/{step}" if step else ""), frozenset(values[:: step or 1]))


def fields(
    lowest: int, highest: int, names: tuple[str, ...] = (), *, wraps: bool = True
) -> st.SearchStrategy[FieldCase]:
    """A field of one to three items."""

    def joined(parts: list[FieldCase]) -> FieldCase:
        return FieldCase(",".join(part.text for part in parts), frozenset().union(*(part.values for part in parts)))

    return st.lists(items(lowest, highest, names, wraps=wraps), min_size=1, max_size=3).map(joined)


seconds = fields(0, 59)
hours = fields(0, 23)
months = fields(1, 12, tuple(MONTHS))
years = st.just(FieldCase("*", frozenset(range(1970, 2200)))) | fields(1970, 2199, wraps=False)


def month_length(day: date) -> int:
    return calendar.monthrange(day.year, day.month)[1]


def is_working(day: date) -> bool:
    return day.isoweekday() <= 5


def is_nearest(day: date, target: int) -> bool:
    """Whether `day` is the Monday to Friday of its month that is nearest to the day `target`."""
    if not 1 <= target <= month_length(day) or not is_working(day):
        return False
    first = day.replace(day=1)
    distances = {
        other.day: abs(other.day - target)
        for other in (first + timedelta(days=number) for number in range(month_length(day)))
        if is_working(other)
    }
    # A Saturday has the Friday nearer, a Sunday the Monday; there are no ties.
    return distances[day.day] == min(distances.values())


def special_month_days() -> st.SearchStrategy[tuple[str, DayTest]]:
    back = st.integers(0, 30)
    return st.one_of(
        st.just(("L", lambda day: day.day == month_length(day))),
        st.just(("lw", lambda day: is_nearest(day, month_length(day)))),
        back.map(lambda n: (f"L-{n}", lambda day: day.day == month_length(day) - n)),
        back.map(lambda n: (f"L-{n}W", lambda day: is_nearest(day, month_length(day) - n))),
        st.integers(1, 31).map(lambda d: (f"{d}W", lambda day: is_nearest(day, d))),
    )


def plain_month_days() -> st.SearchStrategy[tuple[str, DayTest]]:
    return items(1, 31).map(lambda case: (case.text, lambda day: day.day in case.values))


def month_day_cases() -> st.SearchStrategy[DayCase]:
    def joined(parts: list[tuple[str, DayTest]]) -> DayCase:
        text = ",".join(part for part, _ in parts)
        return DayCase(text, "?", lambda day: any(test(day) for _, test in parts))

    return st.lists(plain_month_days() | special_month_days(), min_size=1, max_size=3).map(joined)


def cron_weekday(day: date) -> int:
    return day.isoweekday() % 7 + 1


def week_day_cases() -> st.SearchStrategy[DayCase]:
    plain = fields(1, 7, tuple(WEEKDAYS)).map(
        lambda case: DayCase("?", case.text, lambda day: cron_weekday(day) in case.values)
    )
    weekday = st.integers(1, 7)
    last = weekday.map(
        lambda w: DayCase("?", f"{w}L", lambda day: cron_weekday(day) == w and day.day + 7 > month_length(day))
    )
    ordinal = st.tuples(weekday, st.integers(1, 5)).map(
        lambda pair: DayCase(
            "?",
            f"{WEEKDAYS[pair[0] - 1]}#{pair[1]}",
            lambda day: cron_weekday(day) == pair[0] and (day.day - 1) // 7 + 1 == pair[1],
        )
    )
    return st.one_of(plain, last, ordinal, st.just(DayCase("?", "L", lambda day: day.isoweekday() == 6)))


days = month_day_cases() | week_day_cases()


@st.composite
def expressions(draw: st.DrawFn) -> str:
    day = draw(days)
    time = f"{draw(seconds).text} {draw(seconds).text} {draw(hours).text}"
    year = draw(st.just("") | years.map(lambda case: f" {case.text}"))
    return f"{time} {day.month_day} {draw(months).text} {day.week_day}{year}"
