"""Windows and validity periods against an oracle that looks at every single instant."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from jobwheel.schedule import (
    FixDelaySchedule,
    FixRateSchedule,
    Schedule,
    Window,
    closed_times,
    count_in,
    last_in,
    newest_in,
    parse_schedule,
    preview,
    with_closed_times,
)

NOW_MS = 1_795_746_600_000
SPAN_MS = 300_000
END_MS = NOW_MS + SPAN_MS

moments = st.integers(-1000, SPAN_MS + 1000).map(lambda offset_ms: NOW_MS + offset_ms)
bounds = st.none() | moments
bare_schedules = st.one_of(
    st.builds(FixRateSchedule, st.integers(1, 90), st.integers(NOW_MS - 100_000, NOW_MS)),
    st.sampled_from(["* * * * * ?", "0/7 * * * * ?", "5,6,59 0/2 * * * ?", "0 31 2 * * ?"]).map(
        lambda conf: parse_schedule("CRON", conf, zone="UTC", anchor_ms=None)
    ),
    st.just(parse_schedule("ONCE", "2026-11-27T02:32:00Z", zone="UTC", anchor_ms=None)),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a person may set around a schedule."""

    valid_from_ms: int | None
    valid_until_ms: int | None
    windows: list[Window]

    def around(self, schedule: Schedule) -> Schedule:
        return with_closed_times(schedule, closed_times(self.valid_from_ms, self.valid_until_ms, self.windows))

    def allow(self, instant_ms: int) -> bool:
        if self.valid_from_ms is not None and instant_ms < self.valid_from_ms:
            return False
        if self.valid_until_ms is not None and instant_ms >= self.valid_until_ms:
            return False
        return not any(each.from_ms <= instant_ms < each.until_ms for each in self.windows)


all_limits = st.builds(Limits, bounds, bounds, st.lists(st.builds(Window, moments, moments), max_size=8))


@given(bare_schedules, all_limits)
def test_what_is_left_is_every_instant_that_is_allowed(bare: Schedule, limits: Limits) -> None:
    every = [each for each in preview(bare, NOW_MS, SPAN_MS // 1000 + 1) if each <= END_MS]
    wanted = [each for each in every if limits.allow(each)]
    found = preview(limits.around(bare), NOW_MS, len(wanted) + 1)
    assert [each for each in found if each <= END_MS] == wanted
    assert all(limits.allow(each) for each in found)


@given(bare_schedules, all_limits, moments, moments, st.integers(1, 40))
def test_last_newest_and_count_agree_with_looking_at_all(
    bare: Schedule, limits: Limits, one_ms: int, other_ms: int, most: int
) -> None:
    after_ms, until_ms = min(one_ms, other_ms), max(one_ms, other_ms)
    schedule = limits.around(bare)
    inside = [each for each in preview(schedule, after_ms, SPAN_MS // 1000 + 5) if each <= until_ms]
    assert last_in(schedule, after_ms, until_ms) == (inside[-1] if inside else None)
    assert newest_in(schedule, after_ms, until_ms, most) == inside[-most:]
    assert count_in(schedule, after_ms, until_ms, most) == min(most, len(inside))


@given(st.integers(1, 90), all_limits, moments)
def test_a_fixed_delay_comes_at_the_first_moment_that_is_allowed(interval_s: int, limits: Limits, end_ms: int) -> None:
    due_ms = end_ms + interval_s * 1000
    found = limits.around(FixDelaySchedule(interval_s)).next_after(end_ms)
    # It can change at no other moment than these.
    ends = [due_ms, limits.valid_from_ms or 0, *(each.until_ms for each in limits.windows)]
    allowed = [each for each in ends if each >= due_ms and limits.allow(each)]
    assert found == min(allowed, default=None)
