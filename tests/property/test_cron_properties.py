from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.schedule import CronSchedule, Language, Schedule, count_in, last_in, parse_schedule, preview
from tests.property import cron_strategies as cron

HOUR = 3600
DAY = 24 * HOUR
FIRST_DAY = date(1970, 1, 1)

# Zones with instants at which their clocks change: forth, back, by half an hour, by two or seven hours, over a whole
# day, at midnight, twice a month apart; and zones without any.
CHANGES = [
    ("America/New_York", datetime(2024, 3, 10, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2024, 11, 3, 6, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2037, 10, 25, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2024, 4, 6, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2024, 10, 5, 15, 30, tzinfo=UTC)),
    ("Antarctica/Troll", datetime(2024, 3, 31, 1, tzinfo=UTC)),
    ("Antarctica/Vostok", datetime(1994, 2, 1, 0, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 11, 4, 3, tzinfo=UTC)),
    ("America/Sao_Paulo", datetime(2018, 2, 18, 2, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 3, 22, 2, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2026, 6, 1, tzinfo=UTC)),
    ("UTC", datetime(2024, 2, 29, tzinfo=UTC)),
]


def parse(expression: str, zone: str = "UTC") -> Schedule:
    return parse_schedule("CRON", expression, zone=zone, anchor_ms=None)


def wall_minutes(zone: ZoneInfo, instant: int) -> int:
    """The wall time at an instant, in minutes since 1970 on that wall."""
    local = datetime.fromtimestamp(instant, zone).replace(tzinfo=UTC)
    return int(local.timestamp()) // 60


def instants_of(minutes: frozenset[int], hours: frozenset[int], zone: str, span: range, *, each: bool) -> Iterator[int]:
    """What fires at second 0 in `span`, found minute by minute.

    Every instant counts if `each`, else only the first at which the wall clock shows or passes a matching time.
    """
    info = ZoneInfo(zone)
    highest = wall_minutes(info, span.start) - 1
    for instant in span:
        wall = wall_minutes(info, instant)
        shown = [wall] if each else range(highest + 1, wall + 1)
        highest = max(highest, wall)
        if any(time % 60 in minutes and time // 60 % 24 in hours for time in shown):
            yield instant


@settings(deadline=None)
@given(cron.fields(0, 59), cron.hours, st.sampled_from(CHANGES), st.integers(-26 * HOUR, 2 * HOUR))
def test_around_clock_changes_it_fires_exactly_when_the_rule_says(
    minutes: cron.FieldCase, hours: cron.FieldCase, change: tuple[str, datetime], offset: int
) -> None:
    zone, moment = change
    base = int(moment.timestamp()) + offset
    # The oracle needs a start before the base, so that it knows which wall times have been shown.
    start = (base - 2 * DAY) // 60 * 60
    span = range(start, base + 30 * HOUR, 60)
    is_interval = "*" in hours.text or "/" in hours.text
    expected = [t for t in instants_of(minutes.values, hours.values, zone, span, each=is_interval) if t > base]

    found = preview(parse(f"0 {minutes.text} {hours.text} * * ?", zone), base * 1000, len(expected) + 1)

    assert found[: len(expected)] == [instant * 1000 for instant in expected]
    assert found[-1] >= span.stop // 60 * 60 * 1000


@settings(deadline=None)
@given(cron.days, cron.months, cron.years, st.dates(date(1970, 1, 2), date(2199, 6, 1)))
def test_days_match_the_calendar_and_none_is_left_out(
    days: cron.DayCase, months: cron.FieldCase, years: cron.FieldCase, base: date
) -> None:
    schedule = parse(f"0 0 0 {days.month_day} {months.text} {days.week_day} {years.text}")
    following = [base + timedelta(days=number) for number in range(1, 200)]
    expected = [day for day in following if day.month in months.values and day.year in years.values and days.test(day)]

    found = preview(schedule, (base - FIRST_DAY).days * DAY * 1000, len(expected) + 1)

    assert [FIRST_DAY + timedelta(milliseconds=ms) for ms in found[: len(expected)]] == expected
    assert all(FIRST_DAY + timedelta(milliseconds=ms) > following[-1] for ms in found[len(expected) :])


@settings(deadline=None)
@given(cron.seconds, cron.seconds, cron.hours, st.integers(0, DAY * 1000 - 1))
def test_seconds_of_a_day_match_and_none_is_left_out(
    seconds: cron.FieldCase, minutes: cron.FieldCase, hours: cron.FieldCase, base_ms: int
) -> None:
    found = parse(f"{seconds.text} {minutes.text} {hours.text} * * ?").next_after(base_ms)

    expected = (
        second
        for second in range(base_ms // 1000 + 1, base_ms // 1000 + DAY + 1)
        if second % 60 in seconds.values and second // 60 % 60 in minutes.values and second // HOUR % 24 in hours.values
    )
    assert found == next(expected) * 1000


@settings(deadline=None)
@given(cron.expressions(), st.sampled_from(CHANGES), st.integers(-(10**14), 10**15))
def test_the_next_time_is_later_than_the_base_and_no_base_in_between_skips_it(
    expression: str, change: tuple[str, datetime], base_ms: int
) -> None:
    schedule = parse(expression, change[0])
    found = schedule.next_after(base_ms)
    if found is not None:
        assert found > base_ms
        assert schedule.next_after(found - 1) == found
        assert schedule.next_after((base_ms + found) // 2) == found


@settings(deadline=None)
@given(cron.expressions())
def test_a_printed_expression_parses_to_an_equal_schedule(expression: str) -> None:
    schedule = parse(expression)
    printed = str(schedule)
    assert parse(printed) == schedule
    assert hash(parse(printed)) == hash(schedule)
    assert str(parse(printed)) == printed
    assert parse(expression.lower()) == schedule


@settings(deadline=None)
@given(cron.expressions(), cron.expressions(), st.integers(0, 6))
def test_different_meanings_have_different_words(first: str, second: str, index: int) -> None:
    # One field differs; the day fields change together, so that exactly one stays "?".
    parts, others = f"{first} *".split()[:7], f"{second} *".split()[:7]
    changed = {3, 5} if index in {3, 5} else {index}
    mixed = " ".join(others[at] if at in changed else part for at, part in enumerate(parts))
    one, other = parse(" ".join(parts)), parse(mixed)
    assert isinstance(one, CronSchedule)
    assert isinstance(other, CronSchedule)
    # Words leave the rule for clock changes out.
    same = replace(one.expression, is_interval=False) == replace(other.expression, is_interval=False)
    for language in Language:
        assert (one.describe(language) == other.describe(language)) is same


@settings(deadline=None)
@given(cron.expressions(), st.sampled_from(CHANGES), st.integers(0, 400 * DAY * 1000))
def test_last_and_count_agree_with_stepping(expression: str, change: tuple[str, datetime], length_ms: int) -> None:
    schedule = parse(expression, change[0])
    after_ms = int(change[1].timestamp()) * 1000 - 2 * HOUR * 1000
    until_ms = after_ms + length_ms
    instants = [instant for instant in preview(schedule, after_ms, 500) if instant <= until_ms]

    assert count_in(schedule, after_ms, until_ms, 500) == len(instants)
    last = last_in(schedule, after_ms, until_ms)
    if len(instants) < 500:
        assert last == (instants[-1] if instants else None)
    else:
        assert last is not None
        assert instants[-1] <= last <= until_ms
        assert schedule.next_after(last - 1) == last
        following = schedule.next_after(last)
        assert following is None or following > until_ms
