from datetime import datetime

import pytest

from jobwheel.schedule import CronSchedule, Language, ScheduleError, last_in, parse_schedule, preview

DAY_MS = 86_400_000


def parse(expression: str, zone: str = "UTC") -> CronSchedule:
    schedule = parse_schedule("CRON", expression, zone=zone, anchor_ms=None)
    assert isinstance(schedule, CronSchedule)
    return schedule


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("60 * * * * ?", "second: 60 is not in 0-59"),
        ("0 0 24 * * ?", "hour: 24 is not in 0-23"),
        ("0 0 0 32 * ?", "day-of-month: 32 is not in 1-31"),
        ("0 0 0 0 * ?", "day-of-month: 0 is not in 1-31"),
        ("0 0 0 32W * ?", "day-of-month: 32 is not in 1-31"),
        ("0 0 0 L-31 * ?", "day-of-month: L-31 goes back 31 days, but 30 is the most"),
        ("0 0 0 1 13 ?", "month: 13 is not in 1-12 or JAN-DEC"),
        ("0 0 0 ? * 8", "day-of-week: 8 is not in 1-7 or SUN-SAT"),
        ("0 0 0 ? * fun", "day-of-week: FUN is not in 1-7 or SUN-SAT"),
        ("0 0 0 ? * MON#6", "day-of-week: the 6 of MON#6 is not in 1-5"),
        ("0 0 0 ? * MON#0", "day-of-week: the 0 of MON#0 is not in 1-5"),
        ("0 0 0 ? * MON,WED#2", "day-of-week: WED#2 must stand alone, not in the list MON,WED#2"),
        ("0 0 0 ? * L,2", "day-of-week: L must stand alone, not in the list L,2"),
        ("0 0 0 1 1 ? 2200", "year: 2200 is not in 1970-2199"),
        ("0 0 0 1 1 ? 2030-2026", "year: the range 2030-2026 ends before it begins, and years do not wrap"),
        ("0 10/0 * * * ?", "minute: the step 0 is not in 1-59"),
        ("0 0 */24 * * ?", "hour: the step 24 is not in 1-23"),
        ("0 1,,2 * * * ?", "minute: an item of the list is empty"),
        ("0 ? * * * ?", "minute: ? belongs to a day field; write * for every value"),
        ("0 0 0 1,? * ?", "day-of-month: ? stands alone, not in a list"),
        ("0 -5 * * * ?", "minute: -5 is not understood; values are 0-59, written a, a-b, a/n, a-b/n, */n"),
        (
            "0 0 0 1 JUL-OCT8 ?",
            "month: JUL-OCT8 is not understood; values are 1-12 or JAN-DEC, written a, a-b, a/n, a-b/n, */n",
        ),
        (
            "0 0 0 L/2 * ?",
            (
                "day-of-month: L/2 is not understood; values are 1-31, written a, a-b, a/n, a-b/n, */n, "
                "L, L-n, aW, LW, L-nW"
            ),
        ),
        (
            "0 0 0 ? * 6L-2",
            "day-of-week: 6L-2 is not understood; values are 1-7 or SUN-SAT, written a, a-b, a/n, a-b/n, */n, aL, a#n",
        ),
        ("0 0 0 ? * ?", "day-of-week: exactly one of day-of-month and day-of-week must be ?, but both are"),
        ("0 0 0 * * *", "day-of-week: exactly one of day-of-month and day-of-week must be ?, but they are * and *"),
        (
            "* * * * *",
            (
                "cron: 5 fields, but 6 or 7 are needed: second minute hour day-of-month month day-of-week [year]; a "
                "five-field expression needs a second in front and a ? in one of its day fields"
            ),
        ),
        (
            "",
            "cron: 0 fields, but 6 or 7 are needed: second minute hour day-of-month month day-of-week [year]",
        ),
        (
            "0 0 0 * * \uff1f",
            "day-of-week: \uff1f has a character that is none of the plain letters, digits and , - * / ? # of cron",
        ),
        (
            "0 0 0 ? * \u017fun",
            "day-of-week: \u017fun has a character that is none of the plain letters, digits and , - * / ? # of cron",
        ),
    ],
)
def test_a_refusal_says_which_field_and_why(expression: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        parse(expression)
    assert str(caught.value) == message
    assert caught.value.field == "schedule_conf"
    assert caught.value.code == "schedule_invalid"


def test_numbers_of_thousands_of_digits_are_refused_like_others() -> None:
    with pytest.raises(ScheduleError, match=r"^second: 9+ is not understood"):
        parse(f"{'9' * 5000} * * * * ?")


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("0 0/5 * * * ? *", "0 */5 * * * ?"),
        ("0 0 22-2 ? * fri-mon", "0 0 0-2,22,23 ? * 1,2,6,7"),
        ("0 0 0-23 * * ?", "0 0 0-23 * * ?"),
        ("0 0 0/23 * * ?", "0 0 0,23-23/1 * * ?"),
        ("0 0 5/20 * * ?", "0 0 5-5/1 * * ?"),
        ("0 0 9-17/1 * * ?", "0 0 9-17/1 * * ?"),
        ("0 0 0 L,L-3,lw,L-0W,15w,1 nov-feb ? 2026,2028/2", "0 0 0 1,L,L-3,15W,LW 1,2,11,12 ? 2026/2"),
        ("0 0 0 ? * 1-5/2", "0 0 0 ? * 1-5/2"),
        ("0 0 0 ? * THUL", "0 0 0 ? * 5L"),
        ("0 0 0 ? * L", "0 0 0 ? * 7"),
        ("0 0 0 ? * 2#1", "0 0 0 ? * 2#1"),
        ("0 0 0 ? * *", "0 0 0 * * ?"),
        ("0 0 0 1-31,LW * ?", "0 0 0 * * ?"),
        ("10-50/20,5 * * * * ?", "5,10,30,50 * * * * ?"),
    ],
)
def test_printing_gives_one_form_for_one_meaning(written: str, printed: str) -> None:
    assert str(parse(written)) == printed
    assert parse(written) == parse(printed)


def test_schedules_in_other_zones_or_of_another_kind_of_hour_are_not_equal() -> None:
    assert parse("0 0 * * * ?") != parse("0 0 * * * ?", "Asia/Tokyo")
    assert parse("0 0 * * * ?") != parse("0 0 0-23 * * ?")


def test_leap_days_are_those_of_the_calendar() -> None:
    schedule = parse("0 0 0 29 2 ? *")
    assert schedule.next_after(ms("1996-03-01T00:00:00+00:00")) == ms("2000-02-29T00:00:00+00:00")
    assert schedule.next_after(ms("2096-03-01T00:00:00+00:00")) == ms("2104-02-29T00:00:00+00:00")


@pytest.mark.parametrize(
    "expression",
    ["0 0 0 30 2 ?", "0 0 0 ? 2 2#5 2027", "0 0 0 31W 4 ?", "0 0 0 L-30W 2 ?", "0 0 0 L-30 2 ?", "0 0 0 1 1 ? 2026"],
)
def test_a_day_that_never_comes_gives_none(expression: str) -> None:
    assert parse(expression).next_after(ms("2026-01-01T00:00:00+00:00")) is None


def test_the_last_instant_before_the_year_2200_is_the_last() -> None:
    schedule = parse("0 0 * * * ?", "Pacific/Honolulu")
    last = ms("2199-12-31T23:00:00-10:00")
    assert preview(schedule, last - 3_600_000, 5) == [last]
    assert schedule.next_after(253_402_300_799_000) is None


def test_a_base_before_1970_gives_the_first_instant_of_1970() -> None:
    assert parse("0 0 0 * * ?", "Asia/Tokyo").next_after(-(10**15)) == ms("1970-01-01T00:00:00+09:00")


def test_a_date_that_a_zone_skipped_fires_once_after_the_gap() -> None:
    schedule = parse("0 30 12 * * ?", "Pacific/Apia")
    found = preview(schedule, ms("2011-12-29T12:30:00-10:00"), 2)
    assert found == [ms("2011-12-31T00:00:00+14:00"), ms("2011-12-31T12:30:00+14:00")]


def test_the_second_pass_still_comes_after_the_last_match_of_the_first() -> None:
    # Nothing matches at a later wall time, but the clock goes back and shows 02:30 again.
    schedule = parse("0 30 2/22 27 10 ? 2024", "Europe/Berlin")
    first = ms("2024-10-27T02:30:00+02:00")
    assert preview(schedule, first - 1, 3) == [first, first + 3_600_000]


@pytest.mark.parametrize(
    ("expression", "instant"),
    [
        # The day before clocks go back, in the hour that comes twice, and in the hour that is skipped in another year.
        ("0 0 */12 2 11 ?", "2024-11-02T00:00:00-04:00"),
        ("0 30 1/23 3 11 ?", "2024-11-03T01:30:00-04:00"),
        ("0 30 2/22 10 3 ?", "2025-03-10T02:30:00-04:00"),
    ],
)
def test_a_far_match_near_a_clock_change_is_found(expression: str, instant: str) -> None:
    schedule = parse(expression, "America/New_York")
    assert schedule.next_after(ms("2024-01-15T00:00:00+00:00")) == ms(instant)


def test_the_last_of_a_year_of_seconds_takes_few_look_ups() -> None:
    class Counting:
        def __init__(self) -> None:
            self.schedule = parse("* * 2 1 * ?", "Europe/Berlin")
            self.calls = 0

        def next_after(self, base_ms: int) -> int | None:
            self.calls += 1
            return self.schedule.next_after(base_ms)

        def describe(self, language: Language) -> str:
            return self.schedule.describe(language)

    counting = Counting()
    after = ms("2025-06-15T00:00:00+00:00")
    assert last_in(counting, after, after + 365 * DAY_MS) == ms("2026-06-01T02:59:59+02:00")
    assert counting.calls <= 80
