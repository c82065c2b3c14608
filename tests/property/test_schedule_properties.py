from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from jobwheel.schedule import (
    FixDelaySchedule,
    FixRateSchedule,
    OnceSchedule,
    count_in,
    last_in,
    load_zone,
    parse_schedule,
    preview,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Shanghai"]
instants = st.integers(0, 7_000_000_000_000)


@given(st.integers(1, 315_619_200), instants, instants)
def test_a_fixed_rate_stays_on_its_grid(interval_s: int, anchor_ms: int, base_ms: int) -> None:
    found = FixRateSchedule(interval_s, anchor_ms).next_after(base_ms)
    interval_ms = interval_s * 1000
    assert found > base_ms
    assert (found - anchor_ms) % interval_ms == 0
    assert found >= anchor_ms + interval_ms
    assert found - interval_ms <= max(base_ms, anchor_ms)


@given(st.integers(1, 5000), st.none() | instants, instants, st.integers(0, 1_000_000))
def test_last_and_count_of_intervals_agree_with_stepping(
    interval_s: int, anchor_ms: int | None, after_ms: int, length_ms: int
) -> None:
    until_ms = after_ms + length_ms
    for schedule in (FixRateSchedule(interval_s, anchor_ms), FixDelaySchedule(interval_s)):
        inside = [instant for instant in preview(schedule, after_ms, 1001) if instant <= until_ms]
        assert count_in(schedule, after_ms, until_ms, 2000) == len(inside)
        assert count_in(schedule, after_ms, until_ms, 3) == min(3, len(inside))
        assert last_in(schedule, after_ms, until_ms) == (inside[-1] if inside else None)


@settings(deadline=None)
@given(st.datetimes(datetime(1971, 1, 1), datetime(2199, 1, 1)), st.sampled_from(ZONES))  # noqa: DTZ001 - wall times
def test_a_single_time_is_the_first_instant_that_shows_it(wall: datetime, zone: str) -> None:
    wall = wall.replace(microsecond=0, fold=0)
    schedule = parse_schedule("ONCE", wall.isoformat(), zone=zone, anchor_ms=None)
    assert isinstance(schedule, OnceSchedule)
    shown = (EPOCH + timedelta(milliseconds=schedule.instant_ms)).astimezone(ZoneInfo(zone))
    before = (EPOCH + timedelta(milliseconds=schedule.instant_ms - 1000)).astimezone(ZoneInfo(zone))
    assert before.replace(tzinfo=None) < wall <= shown.replace(tzinfo=None)
    if wall.replace(tzinfo=ZoneInfo(zone)).timestamp() == schedule.instant_ms / 1000:
        return
    # Only a skipped time may be shown late.
    assert wall < shown.replace(tzinfo=None)


@settings(deadline=None)
@given(st.integers(0, 7_000_000_000), st.sampled_from(ZONES))
def test_the_offset_of_a_zone_is_that_of_the_zone_data(instant: int, zone: str) -> None:
    piece = load_zone(zone).piece_at(instant)
    assert piece.start <= instant < piece.end
    offset = (EPOCH + timedelta(seconds=instant)).astimezone(ZoneInfo(zone)).utcoffset()
    assert offset == timedelta(seconds=piece.offset)
