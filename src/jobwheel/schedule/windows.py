"""A validity period and pause windows around any schedule."""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from jobwheel.schedule.base import Language, Schedule
from jobwheel.schedule.interval import FixDelaySchedule, FixRateSchedule

_ALWAYS: Final = -(2**63)
_FOREVER: Final = 2**63


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """A time in which nothing is planned: `from_ms` belongs to it, `until_ms` does not (epoch milliseconds)."""

    from_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class WindowedSchedule:
    """A schedule without its instants inside `closed`; a FIX_DELAY instant in there moves to the end instead.

    `closed` comes from `closed_times`.
    """

    schedule: Schedule
    closed: tuple[Window, ...]

    def next_after(self, base_ms: int) -> int | None:
        """See `Schedule.next_after`; one look-up for each window that is jumped over."""
        return self.admit(self.schedule.next_after(base_ms))

    def describe(self, language: Language) -> str:
        """See `Schedule.describe`; the words of the schedule within."""
        return self.schedule.describe(language)

    def admit(self, instant_ms: int | None) -> int | None:
        """An instant of the schedule within, or what takes its place if it lies in a closed time; None = nothing."""
        schedule = self.schedule
        if isinstance(schedule, FixRateSchedule) and schedule.anchor_ms is None:
            # Each base would be an anchor of its own; the instant is on the grid that was meant.
            schedule = replace(schedule, anchor_ms=instant_ms)
        while instant_ms is not None:
            open_ms = _open_from(self.closed, instant_ms)
            if open_ms is None or open_ms == instant_ms or isinstance(schedule, FixDelaySchedule):
                return open_ms
            instant_ms = schedule.next_after(open_ms - 1)
        return None


def closed_times(
    valid_from_ms: int | None, valid_until_ms: int | None, windows: Iterable[Window]
) -> tuple[Window, ...]:
    """When nothing is planned: before and after a validity period, and in pause windows; in order, merged.

    The validity period holds its first millisecond and not its last; a window is the same. Empty windows are left out.
    """
    closed = list(windows)
    if valid_from_ms is not None:
        closed.append(Window(_ALWAYS, valid_from_ms))
    if valid_until_ms is not None:
        closed.append(Window(valid_until_ms, _FOREVER))
    merged: list[Window] = []
    for each in sorted(closed):
        if each.until_ms <= each.from_ms:
            continue
        if merged and each.from_ms <= merged[-1].until_ms:
            merged[-1] = Window(merged[-1].from_ms, max(merged[-1].until_ms, each.until_ms))
        else:
            merged.append(each)
    return tuple(merged)


def with_closed_times(schedule: Schedule, closed: tuple[Window, ...]) -> Schedule:
    """The schedule without what lies in the closed times; itself if there are none."""
    return WindowedSchedule(schedule, closed) if closed else schedule


def without_closed_times(schedule: Schedule) -> Schedule:
    """The schedule as it would be without a validity period and windows: its kind can be asked."""
    return schedule.schedule if isinstance(schedule, WindowedSchedule) else schedule


def admitted(schedule: Schedule, instant_ms: int) -> int | None:
    """A stored instant of the schedule, or what takes its place if it lies in a closed time; None = nothing."""
    return schedule.admit(instant_ms) if isinstance(schedule, WindowedSchedule) else instant_ms


def _open_from(closed: tuple[Window, ...], instant_ms: int) -> int | None:
    """The first millisecond from the instant on that is not closed; None = there is none."""
    at = bisect_right(closed, instant_ms, key=lambda window: window.from_ms) - 1
    if at < 0 or closed[at].until_ms <= instant_ms:
        return instant_ms
    return None if closed[at].until_ms == _FOREVER else closed[at].until_ms
