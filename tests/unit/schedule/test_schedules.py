from datetime import datetime

import pytest

from jobwheel.schedule import (
    FixDelaySchedule,
    FixRateSchedule,
    NeverSchedule,
    OnceSchedule,
    ScheduleError,
    ScheduleType,
    count_in,
    last_in,
    load_zone,
    parse_schedule,
    preview,
)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def refusal(schedule_type: str, conf: str, zone: str = "UTC") -> ScheduleError:
    with pytest.raises(ScheduleError) as caught:
        parse_schedule(schedule_type, conf, zone=zone, anchor_ms=None)
    return caught.value


def once(text: str, zone: str = "UTC") -> int:
    schedule = parse_schedule("ONCE", text, zone=zone, anchor_ms=None)
    assert isinstance(schedule, OnceSchedule)
    return schedule.instant_ms


def test_a_rate_of_thirty_days_is_thirty_days() -> None:
    anchor = ms("2026-01-31T08:00:00+00:00")
    schedule = parse_schedule("FIX_RATE", "2592000", zone="America/New_York", anchor_ms=anchor)
    assert preview(schedule, anchor, 2) == [anchor + 30 * DAY_MS, anchor + 60 * DAY_MS]


def test_a_rate_keeps_its_phase_over_a_late_base() -> None:
    schedule = FixRateSchedule(3600, ms("2026-05-01T07:10:00+00:00"))
    assert schedule.next_after(ms("2026-05-01T09:30:00+00:00")) == ms("2026-05-01T10:10:00+00:00")


def test_a_rate_never_fires_at_its_anchor_nor_before() -> None:
    schedule = FixRateSchedule(60, 1_000_000_500)
    assert schedule.next_after(0) == 1_000_060_500
    assert schedule.next_after(1_000_060_499) == 1_000_060_500
    assert schedule.next_after(1_000_060_500) == 1_000_120_500


def test_a_rate_without_an_anchor_counts_from_the_base_in_whole_seconds() -> None:
    schedule = parse_schedule("FIX_RATE", "10", zone="UTC", anchor_ms=None)
    assert preview(schedule, 5_999, 3) == [15_000, 25_000, 35_000]


def test_a_delay_counts_from_the_end_it_is_given() -> None:
    schedule = parse_schedule("FIX_DELAY", "10", zone="UTC", anchor_ms=1)
    assert schedule == FixDelaySchedule(10)
    assert schedule.next_after(7_001) == 17_001


@pytest.mark.parametrize("schedule_type", ["FIX_RATE", "FIX_DELAY"])
@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ("0", "interval: 0 is not in 1-315619200 seconds (ten years)"),
        ("315619201", "interval: 315619201 is not in 1-315619200 seconds (ten years)"),
        ("-5", "interval: '-5' is not a whole number of seconds"),
        ("1.5", "interval: '1.5' is not a whole number of seconds"),
        ("", "interval: '' is not a whole number of seconds"),
        ("\uff15", "interval: '\uff15' is not a whole number of seconds"),
        ("9" * 5000, f"interval: {'9' * 20}… is not in 1-315619200 seconds (ten years)"),
    ],
)
def test_an_interval_is_whole_seconds_up_to_ten_years(schedule_type: str, conf: str, message: str) -> None:
    error = refusal(schedule_type, conf)
    assert (str(error), error.field) == (message, "schedule_conf")


def test_ten_years_are_allowed() -> None:
    assert parse_schedule("FIX_RATE", " 315619200 ", zone="UTC", anchor_ms=0).next_after(0) == 315_619_200_000


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-12-01T02:00:00", "Asia/Shanghai", "2026-12-01T02:00:00+08:00"),
        ("2026-12-01T02:00:00+08:00", "America/New_York", "2026-12-01T02:00:00+08:00"),
        ("2026-12-01T02:00:00-03:30", "America/New_York", "2026-12-01T02:00:00-03:30"),
        (" 2026-12-01t02:00:00z ", "America/New_York", "2026-12-01T02:00:00+00:00"),
        # Skipped: the first instant after the gap.
        ("2024-03-10T02:30:00", "America/New_York", "2024-03-10T03:00:00-04:00"),
        # Repeated: the first pass.
        ("2024-11-03T01:30:00", "America/New_York", "2024-11-03T01:30:00-04:00"),
        ("2199-12-31T23:59:59", "Pacific/Honolulu", "2199-12-31T23:59:59-10:00"),
        ("1970-01-01T00:00:00", "UTC", "1970-01-01T00:00:00+00:00"),
    ],
)
def test_a_single_time_is_read_in_the_zone_or_with_its_offset(text: str, zone: str, instant: str) -> None:
    assert once(text, zone) == ms(instant)


def test_a_single_time_fires_once() -> None:
    schedule = parse_schedule("ONCE", "2026-12-01T02:00:00Z", zone="UTC", anchor_ms=None)
    instant = ms("2026-12-01T02:00:00+00:00")
    assert schedule.next_after(instant - 1) == instant
    assert schedule.next_after(instant) is None
    assert last_in(schedule, 0, instant) == instant
    assert last_in(schedule, 0, instant - 1) is None
    assert count_in(schedule, 0, instant, 10) == 1


FORM = "is not of the form 2026-12-01T02:00:00, with or without an offset such as +08:00 or Z"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tomorrow", FORM),
        ("2026-12-01", FORM),
        ("2026-12-01T02:00:00+08:60", FORM),
        ("2026-02-30T02:00:00", "is not a time: day is out of range for month"),
        ("2026-12-01T24:00:00", "is not a time: hour must be in 0..23"),
        ("1969-12-31T23:59:59", "is not in the years 1970-2199"),
        ("2200-01-01T00:00:00", "is not in the years 1970-2199"),
        ("1970-01-01T00:00:00+08:00", "is before 1970 in UTC"),
    ],
)
def test_a_single_time_that_cannot_be_used_is_refused(text: str, problem: str) -> None:
    error = refusal("ONCE", text)
    assert (str(error), error.field) == (f"time: {text!r} {problem}", "schedule_conf")


def test_none_has_no_instant() -> None:
    schedule = parse_schedule("NONE", "anything", zone="UTC", anchor_ms=None)
    assert schedule == NeverSchedule()
    assert schedule.next_after(0) is None
    assert (preview(schedule, 0, 3), last_in(schedule, 0, DAY_MS), count_in(schedule, 0, DAY_MS, 3)) == ([], None, 0)


def test_an_unknown_type_names_the_known_ones() -> None:
    error = refusal("cron", "0 0 0 * * ?")
    assert str(error) == "schedule type: 'cron' is not one of NONE, CRON, FIX_RATE, FIX_DELAY, ONCE"
    assert error.field == "schedule_type"


@pytest.mark.parametrize(
    "zone", ["", "Nowhere/Town", "America", "../etc/passwd", "/etc/localtime", "right/UTC", "a\0b"]
)
@pytest.mark.parametrize("schedule_type", list(ScheduleType))
def test_an_unknown_zone_is_named(schedule_type: ScheduleType, zone: str) -> None:
    error = refusal(schedule_type, "60", zone)
    assert str(error) == f"time zone: {zone!r} is not known; give an IANA name such as Europe/Berlin"
    assert error.field == "time_zone"


def test_a_zone_equals_another_of_its_name_only() -> None:
    assert load_zone("Asia/Tokyo") == load_zone("Asia/Tokyo")
    assert load_zone("Asia/Tokyo") != load_zone("Asia/Seoul")


def test_a_repeated_hour_shows_its_highest_wall_time_until_it_is_over() -> None:
    zone = load_zone("America/New_York")
    second_pass = ms("2024-11-03T01:10:00-05:00") // 1000
    wall_before_change = ms("2024-11-03T01:59:59+00:00") // 1000
    assert zone.highest_wall(second_pass) == wall_before_change
    assert zone.highest_wall(second_pass + 2 * 3600) == ms("2024-11-03T03:10:00+00:00") // 1000


def test_the_end_of_a_span_belongs_to_it_and_its_beginning_does_not() -> None:
    schedule = parse_schedule("CRON", "0/5 * * * * ?", zone="UTC", anchor_ms=None)
    assert last_in(schedule, 0, 20_000) == 20_000
    assert last_in(schedule, 0, 19_999) == 15_000
    assert last_in(schedule, 15_000, 19_999) is None
    assert count_in(schedule, 0, 20_000, 100) == 4


def test_a_count_stops_at_the_most_it_is_asked_for() -> None:
    schedule = parse_schedule("CRON", "* * * * * ?", zone="UTC", anchor_ms=None)
    assert count_in(schedule, 0, DAY_MS, 100) == 100
    assert count_in(schedule, 0, 5_000, 100) == 5
    assert preview(schedule, 0, 0) == []
