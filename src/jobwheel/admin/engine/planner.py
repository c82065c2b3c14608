"""Pure planning: (job, now) → planned times, misfire, next time."""

from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS, MISFIRE_AFTER_MS, MisfireStrategy, RouteStrategy
from jobwheel.admin.domain.run import TriggerType
from jobwheel.schedule import (
    FixDelaySchedule,
    OnceSchedule,
    Schedule,
    ScheduleError,
    Window,
    admitted,
    closed_times,
    count_in,
    last_in,
    newest_in,
    parse_schedule,
    with_closed_times,
    without_closed_times,
)

_ROUTES = frozenset(RouteStrategy)

MISFIRES_COUNTED = 10_000
"""Missed instants are counted so far; then the event says "more than" (`behaviour.md`, Misfire)."""


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """How much of a job is planned: up to `horizon_ms`, at most `most_runs` (≥ 1).

    `most_made_up` (≥ 1) of the missed instants run with FIRE_ALL: the newest of them.
    """

    horizon_ms: int
    most_runs: int
    most_made_up: int = 100


class Fire(msgspec.Struct, frozen=True, gc=False):
    """One run to be written."""

    planned_ms: int
    trigger_type: TriggerType


@dataclass(frozen=True, slots=True)
class Misfire:
    """The planned times that were missed: how many (at most `MISFIRES_COUNTED`, `more` beyond), from when to when.

    `made_up` are those that run now, oldest first; the last one of them is `last_ms`.
    """

    count: int
    more: bool
    first_ms: int
    last_ms: int
    strategy: MisfireStrategy
    made_up: tuple[int, ...]


class Plan(msgspec.Struct, frozen=True, gc=False):
    """What a claim does with one job. `next_ms` None: the job has no further time and stops itself."""

    fires: tuple[Fire, ...]
    misfire: Misfire | None
    next_ms: int | None
    last_ms: int | None


class UnusableJobError(Exception):
    """A stored job whose schedule or policy cannot be read: it alone is stopped."""


class Schedules:
    """Parsed schedules by their settings: parsing costs a hundred times a next time."""

    def __init__(self, installation_zone: str, most: int = 50_000) -> None:
        self._zone = installation_zone
        self._most = most
        self._parsed: dict[tuple[str, str, str | None, int | None], Schedule] = {}

    def of(self, job: DueJob) -> Schedule:
        """The job's schedule.

        Raises:
            UnusableJobError: the stored settings are no schedule, or the row is damaged.
        """
        if job.damage is not None:
            raise UnusableJobError(job.damage)
        key = (job.schedule_type, job.schedule_conf, job.time_zone, job.anchor_ms)
        schedule = self._parsed.get(key)
        if schedule is None:
            if len(self._parsed) >= self._most:
                self._parsed.clear()
            schedule = self._parsed[key] = self._parse(job)
        if job.pause_windows or job.valid_from_ms is not None or job.valid_until_ms is not None:
            windows = (Window(each.from_ms, each.until_ms) for each in job.pause_windows)
            return with_closed_times(schedule, closed_times(job.valid_from_ms, job.valid_until_ms, windows))
        return schedule

    def _parse(self, job: DueJob) -> Schedule:
        try:
            return parse_schedule(
                job.schedule_type, job.schedule_conf, zone=job.time_zone or self._zone, anchor_ms=job.anchor_ms
            )
        except ScheduleError as error:
            raise UnusableJobError(error.message) from error


def plan(job: DueJob, schedule: Schedule, now_ms: int, limits: PlanLimits) -> Plan:
    """Plan a due job.

    Planned times more than `MISFIRE_AFTER_MS` before now are misfires and are handled by the job's policy; younger
    ones fire, each of them, late or not. What does not fit into the limits is left to the next plan: the next time is
    the first instant that was not handled, missed or not.

    Raises:
        UnusableJobError: the misfire policy or the route is unknown, or a time is none.
    """
    if job.next_ms < 0:
        raise UnusableJobError(f"trigger_next_time {job.next_ms} is no time")
    if job.route_strategy not in _ROUTES:
        raise UnusableJobError(f"executor_route_strategy {job.route_strategy!r} is unknown")
    # Whether something was missed or not: a policy that nobody knows must not wait for the first outage to be found.
    strategy = _strategy(job)
    planned = _plan(job, schedule, strategy, now_ms, limits)
    if planned.next_ms is not None and planned.next_ms > AWAITING_SETTLEMENT_MS:
        raise UnusableJobError(f"its next time {planned.next_ms} is beyond the year 9999")
    return planned


def _plan(job: DueJob, schedule: Schedule, strategy: MisfireStrategy, now_ms: int, limits: PlanLimits) -> Plan:
    # A settlement counts an interval on and looks at no window, and windows may have been written by hand.
    first_ms = admitted(schedule, job.next_ms)
    missed_before_ms = now_ms - MISFIRE_AFTER_MS
    if first_ms is None or first_ms >= missed_before_ms:
        return _plan_on(schedule, first_ms, limits, None)
    misfire = _misfire(strategy, schedule, first_ms, missed_before_ms - 1, limits)
    if not _waits_for_end(schedule):
        return _plan_on(schedule, schedule.next_after(misfire.last_ms), limits, misfire)
    # Nothing follows a missed FIX_DELAY instant until a run ends, or, without one, until an interval has passed.
    next_ms = AWAITING_SETTLEMENT_MS if misfire.made_up else schedule.next_after(now_ms)
    return Plan(_missed_fires(misfire), misfire, next_ms, misfire.last_ms)


def _plan_on(schedule: Schedule, next_ms: int | None, limits: PlanLimits, misfire: Misfire | None) -> Plan:
    fires = list(_missed_fires(misfire))
    last_ms = misfire.last_ms if misfire else None
    waits_for_end = _waits_for_end(schedule)
    while next_ms is not None and next_ms <= limits.horizon_ms and len(fires) < limits.most_runs:
        fires.append(Fire(next_ms, TriggerType.CRON))
        last_ms = next_ms
        next_ms = AWAITING_SETTLEMENT_MS if waits_for_end else schedule.next_after(next_ms)
    return Plan(tuple(fires), misfire, next_ms, last_ms)


def _missed_fires(misfire: Misfire | None) -> tuple[Fire, ...]:
    return tuple(Fire(each, TriggerType.MISFIRE) for each in misfire.made_up) if misfire else ()


def _misfire(
    strategy: MisfireStrategy, schedule: Schedule, first_ms: int, until_ms: int, limits: PlanLimits
) -> Misfire:
    """What was missed from `first_ms` to `until_ms`, or up to the last one that the limits let run."""
    made_up = _made_up(strategy, schedule, first_ms, until_ms, limits)
    if _is_single(schedule):
        return Misfire(1, more=False, first_ms=first_ms, last_ms=first_ms, strategy=strategy, made_up=made_up)
    # The first time counts even where the schedule itself would not name it (a taken-over or edited row).
    last_ms = made_up[-1] if made_up else last_in(schedule, first_ms, until_ms) or first_ms
    counted = 1 + count_in(schedule, first_ms, last_ms, MISFIRES_COUNTED)
    count, more = min(counted, MISFIRES_COUNTED), counted > MISFIRES_COUNTED
    return Misfire(count, more, first_ms, last_ms, strategy, made_up)


def _made_up(
    strategy: MisfireStrategy, schedule: Schedule, first_ms: int, until_ms: int, limits: PlanLimits
) -> tuple[int, ...]:
    if strategy is MisfireStrategy.DO_NOTHING:
        return ()
    if _is_single(schedule):
        return (first_ms,)
    most = limits.most_made_up if strategy is MisfireStrategy.FIRE_ALL else 1
    newest = newest_in(schedule, first_ms, until_ms, most)
    if len(newest) < most:
        newest.insert(0, first_ms)
    # The oldest of the newest: those that have no room now are the first missed ones of the next plan.
    return tuple(newest[: limits.most_runs])


def _is_single(schedule: Schedule) -> bool:
    """Whether nothing can be missed but one instant."""
    return isinstance(without_closed_times(schedule), FixDelaySchedule | OnceSchedule)


def _waits_for_end(schedule: Schedule) -> bool:
    return isinstance(without_closed_times(schedule), FixDelaySchedule)


def _strategy(job: DueJob) -> MisfireStrategy:
    try:
        return MisfireStrategy(job.misfire_strategy)
    except ValueError as error:
        raise UnusableJobError(f"misfire_strategy {job.misfire_strategy!r} is unknown") from error
