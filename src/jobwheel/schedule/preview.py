"""Rows of instants of a schedule."""

from jobwheel.schedule.base import MS_PER_SECOND, Schedule
from jobwheel.schedule.interval import FixDelaySchedule, FixRateSchedule


def preview(schedule: Schedule, base_ms: int, count: int) -> list[int]:
    """The next `count` instants after `base_ms`, fewer if there are no more."""
    instants: list[int] = []
    instant = schedule.next_after(base_ms)
    while instant is not None and len(instants) < count:
        instants.append(instant)
        instant = schedule.next_after(instant)
    return instants


def last_in(schedule: Schedule, after_ms: int, until_ms: int) -> int | None:
    """The last instant later than `after_ms` and not later than `until_ms`, in some forty look-ups at most.

    A FIX_DELAY with windows has no such row of instants: its last one is not asked for.
    """
    first = schedule.next_after(after_ms)
    if first is None or first > until_ms:
        return None
    if isinstance(schedule, FixRateSchedule | FixDelaySchedule):
        interval_ms = schedule.interval_s * MS_PER_SECOND
        return first + (until_ms - first) // interval_ms * interval_ms
    return _last_from(schedule, first, until_ms)


def newest_in(schedule: Schedule, after_ms: int, until_ms: int, most: int) -> list[int]:
    """The last `most` instants later than `after_ms` and not later than `until_ms`, oldest first; see `last_in`."""
    newest: list[int] = []
    instant = last_in(schedule, after_ms, until_ms)
    while instant is not None and len(newest) < most:
        newest.append(instant)
        instant = last_in(schedule, after_ms, instant - 1)
    return newest[::-1]


def _last_from(schedule: Schedule, first: int, until_ms: int) -> int:
    """Bisects: `last` is an instant, and no instant lies after `empty_from` and up to `until_ms`."""
    last, empty_from = first, until_ms
    # The windows grow from the end, because the last instant is mostly near it.
    window_ms = MS_PER_SECOND
    while last < empty_from:
        middle = max(last, empty_from - window_ms, (last + empty_from) // 2)
        found = schedule.next_after(middle)
        if found is None or found > until_ms:
            empty_from = middle
        else:
            last = found
        window_ms *= 2
    return last


def count_in(schedule: Schedule, after_ms: int, until_ms: int, most: int) -> int:
    """How many instants are later than `after_ms` and not later than `until_ms`, counted up to `most`."""
    count = 0
    instant = schedule.next_after(after_ms)
    if instant is not None and isinstance(schedule, FixRateSchedule | FixDelaySchedule):
        return min(most, max(0, (until_ms - instant) // (schedule.interval_s * MS_PER_SECOND) + 1))
    while count < most and instant is not None and instant <= until_ms:
        count += 1
        instant = schedule.next_after(instant)
    return count
