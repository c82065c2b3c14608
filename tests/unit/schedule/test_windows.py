"""Validity periods and pause windows: what they take away, what they move, and that they are jumped over."""

import time

import pytest

from jobwheel.schedule import (
    FixDelaySchedule,
    FixRateSchedule,
    Language,
    NeverSchedule,
    Schedule,
    Window,
    WindowedSchedule,
    admitted,
    closed_times,
    count_in,
    last_in,
    newest_in,
    parse_schedule,
    preview,
    with_closed_times,
    without_closed_times,
)

# 2026-11-27T02:30:00Z
NOW_MS = 1_795_746_600_000
YEAR_MS = 365 * 86_400_000


def every_second() -> Schedule:
    return parse_schedule("CRON", "* * * * * ?", zone="UTC", anchor_ms=None)


def within(schedule: Schedule, *spans: tuple[int, int], start: int | None = None, end: int | None = None) -> Schedule:
    """The schedule with windows and a validity period, in seconds from `NOW_MS`."""
    windows = [Window(NOW_MS + 1000 * first, NOW_MS + 1000 * last) for first, last in spans]
    valid_from_ms, valid_until_ms = (None if each is None else NOW_MS + 1000 * each for each in (start, end))
    return with_closed_times(schedule, closed_times(valid_from_ms, valid_until_ms, windows))


def seconds(instants: list[int]) -> list[float]:
    return [(instant - NOW_MS) / 1000 for instant in instants]


def test_a_window_holds_its_first_instant_and_not_its_last() -> None:
    assert seconds(preview(within(every_second(), (2, 4)), NOW_MS, 4)) == [1, 4, 5, 6]


def test_a_validity_period_holds_its_first_instant_and_not_its_last() -> None:
    assert seconds(preview(within(every_second(), start=2, end=4), NOW_MS, 10)) == [2, 3]


def test_windows_touch_overlap_and_lie_in_any_order() -> None:
    schedule = within(every_second(), (8, 9), (4, 6), (2, 4), (3, 5), (7, 7), (20, 19))
    assert seconds(preview(schedule, NOW_MS, 5)) == [1, 6, 7, 9, 10]


def test_closed_times_are_merged() -> None:
    given = [Window(5, 7), Window(1, 3), Window(3, 4), Window(6, 9), Window(2, 3)]
    assert closed_times(None, None, given) == (Window(1, 4), Window(5, 9))
    assert closed_times(None, None, []) == ()
    assert closed_times(0, 1, [Window(0, 1)]) == (Window(-(2**63), 2**63),)


def test_without_closed_times_a_schedule_is_itself() -> None:
    schedule = every_second()
    assert with_closed_times(schedule, ()) is schedule
    assert without_closed_times(schedule) is schedule
    assert without_closed_times(within(schedule, (1, 2))) is schedule
    assert admitted(schedule, 7) == 7


def test_a_year_of_seconds_is_jumped_over() -> None:
    schedule = within(every_second(), (0, YEAR_MS // 1000))
    began_s = time.perf_counter()
    assert schedule.next_after(NOW_MS) == NOW_MS + YEAR_MS
    assert last_in(schedule, NOW_MS - 1500, NOW_MS + YEAR_MS - 1) == NOW_MS - 1000
    assert newest_in(schedule, NOW_MS - 5000, NOW_MS + YEAR_MS, 3) == [NOW_MS - 2000, NOW_MS - 1000, NOW_MS + YEAR_MS]
    assert time.perf_counter() - began_s < 0.1


def test_a_fixed_rate_keeps_its_grid_over_a_window() -> None:
    schedule = within(FixRateSchedule(7, NOW_MS), (10, 30))
    assert seconds(preview(schedule, NOW_MS, 3)) == [7, 35, 42]


def test_a_fixed_rate_without_an_anchor_keeps_the_grid_of_its_base() -> None:
    base_ms = NOW_MS + 250
    bare = preview(FixRateSchedule(7, None), base_ms, 7)
    assert preview(within(FixRateSchedule(7, None), (10, 30)), base_ms, 3) == [bare[0], *bare[4:6]]
    assert preview(within(FixRateSchedule(7, None), start=30), base_ms, 2) == bare[4:6]


def test_a_fixed_delay_moves_to_the_end_of_the_window() -> None:
    schedule = within(FixDelaySchedule(10), (5, 30), (30, 40), start=2)
    assert schedule.next_after(NOW_MS) == NOW_MS + 40_000
    assert schedule.next_after(NOW_MS - 8000) == NOW_MS + 2000
    assert schedule.next_after(NOW_MS - 60_000) == NOW_MS + 2000
    assert schedule.next_after(NOW_MS + 35_000) == NOW_MS + 45_000


def test_a_fixed_delay_that_moves_past_the_validity_period_is_none() -> None:
    assert within(FixDelaySchedule(10), (5, 30), end=30).next_after(NOW_MS) is None
    assert within(FixDelaySchedule(10), (5, 30), end=31).next_after(NOW_MS) == NOW_MS + 30_000


@pytest.mark.parametrize(("span", "fires"), [((0, 5), True), ((5, 6), False), ((6, 9), True)])
def test_a_single_instant_in_a_window_is_none(span: tuple[int, int], fires: bool) -> None:
    once = parse_schedule("ONCE", "2026-11-27T02:30:05Z", zone="UTC", anchor_ms=None)
    assert (within(once, span).next_after(NOW_MS) is not None) is fires


def test_never_stays_never() -> None:
    assert within(NeverSchedule(), (1, 2), start=0).next_after(NOW_MS) is None


@pytest.mark.parametrize(
    ("stored_s", "taken_s"), [(1, 1), (2, 4), (3, 4), (3.5, 4), (4, 4), (9, None), (10, None), (-5, 0), (0, 0)]
)
def test_a_stored_instant_in_a_window_is_replaced(stored_s: float, taken_s: int | None) -> None:
    for schedule in (every_second(), FixDelaySchedule(3)):
        found = admitted(within(schedule, (2, 4), start=0, end=9), NOW_MS + int(1000 * stored_s))
        assert found == (None if taken_s is None else NOW_MS + 1000 * taken_s)


def test_an_instant_that_the_schedule_would_not_name_stays_outside_windows() -> None:
    assert admitted(within(every_second(), (2, 4)), NOW_MS + 123) == NOW_MS + 123
    assert admitted(within(every_second(), (2, 4)), NOW_MS + 3123) == NOW_MS + 4000


def test_counts_leave_windows_out() -> None:
    schedule = within(FixRateSchedule(1, NOW_MS), (3, 8))
    assert count_in(schedule, NOW_MS, NOW_MS + 10_000, 100) == 5
    assert count_in(schedule, NOW_MS, NOW_MS + 10_000, 4) == 4


def test_the_words_are_those_of_the_schedule() -> None:
    schedule = within(every_second(), (1, 2))
    assert isinstance(schedule, WindowedSchedule)
    assert schedule.describe(Language.EN) == every_second().describe(Language.EN)
