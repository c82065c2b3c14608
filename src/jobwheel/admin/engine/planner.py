"""Pure planning: (job, now) → planned times, misfire, next time."""

from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS, MISFIRE_AFTER_MS, MisfireStrategy
from jobwheel.admin.domain.run import TriggerType
from jobwheel.schedule import FixDelaySchedule, OnceSchedule, Schedule, ScheduleError, count_in, last_in, parse_schedule

MISFIRES_COUNTED = 10_000
"""Missed instants are counted so far; then the event says "more than" (`behaviour.md`, Misfire)."""


class Fire(msgspec.Struct, frozen=True, gc=False):
    """One run to be written."""

    planned_ms: int
    trigger_type: TriggerType


@dataclass(frozen=True, slots=True)
class Misfire:
    """The planned times that were missed: how many (at most `MISFIRES_COUNTED`, `more` beyond), from when to when."""

    count: int
    more: bool
    first_ms: int
    last_ms: int
    strategy: MisfireStrategy


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
            UnusableJobError: the stored settings are no schedule.
        """
        key = (job.schedule_type, job.schedule_conf, job.time_zone, job.anchor_ms)
        schedule = self._parsed.get(key)
        if schedule is None:
            if len(self._parsed) >= self._most:
                self._parsed.clear()
            schedule = self._parsed[key] = self._parse(job)
        return schedule

    def _parse(self, job: DueJob) -> Schedule:
        try:
            return parse_schedule(
                job.schedule_type, job.schedule_conf, zone=job.time_zone or self._zone, anchor_ms=job.anchor_ms
            )
        except ScheduleError as error:
            raise UnusableJobError(error.message) from error


def plan(job: DueJob, schedule: Schedule, now_ms: int, horizon_ms: int, most: int) -> Plan:
    """Plan a due job up to the horizon, at most `most` (≥ 1) runs.

    Planned times more than `MISFIRE_AFTER_MS` before now are misfires and are handled by the job's policy; younger
    ones fire, each of them, late or not.

    Raises:
        UnusableJobError: the misfire policy is unknown or not supported, or a time is none.
    """
    if job.next_ms < 0:
        raise UnusableJobError(f"trigger_next_time {job.next_ms} is no time")
    planned = _plan(job, schedule, now_ms, horizon_ms, most)
    if planned.next_ms is not None and planned.next_ms > AWAITING_SETTLEMENT_MS:
        raise UnusableJobError(f"its next time {planned.next_ms} is beyond the year 9999")
    return planned


def _plan(job: DueJob, schedule: Schedule, now_ms: int, horizon_ms: int, most: int) -> Plan:
    missed_before_ms = now_ms - MISFIRE_AFTER_MS
    if job.next_ms >= missed_before_ms:
        return _plan_on(schedule, job.next_ms, horizon_ms, most, None, [])
    misfire = _misfire(job, schedule, missed_before_ms)
    fires = [Fire(misfire.last_ms, TriggerType.MISFIRE)] if misfire.strategy is MisfireStrategy.FIRE_ONCE_NOW else []
    if isinstance(schedule, FixDelaySchedule):
        # Nothing follows a missed FIX_DELAY instant until a run ends, or, without one, until an interval has passed.
        next_ms = AWAITING_SETTLEMENT_MS if fires else now_ms + schedule.interval_s * 1000
        return Plan(tuple(fires), misfire, next_ms, misfire.last_ms)
    return _plan_on(schedule, schedule.next_after(misfire.last_ms), horizon_ms, most, misfire, fires)


def _plan_on(
    schedule: Schedule, next_ms: int | None, horizon_ms: int, most: int, misfire: Misfire | None, fires: list[Fire]
) -> Plan:
    last_ms = misfire.last_ms if misfire else None
    waits_for_end = isinstance(schedule, FixDelaySchedule)
    while next_ms is not None and next_ms <= horizon_ms and len(fires) < most:
        fires.append(Fire(next_ms, TriggerType.CRON))
        last_ms = next_ms
        next_ms = AWAITING_SETTLEMENT_MS if waits_for_end else schedule.next_after(next_ms)
    return Plan(tuple(fires), misfire, next_ms, last_ms)


def _misfire(job: DueJob, schedule: Schedule, missed_before_ms: int) -> Misfire:
    strategy = _strategy(job)
    if isinstance(schedule, FixDelaySchedule | OnceSchedule):
        return Misfire(1, more=False, first_ms=job.next_ms, last_ms=job.next_ms, strategy=strategy)
    # The stored next time counts even where the schedule itself would not name it (a taken-over or edited row).
    last_ms = last_in(schedule, job.next_ms, missed_before_ms - 1) or job.next_ms
    counted = 1 + count_in(schedule, job.next_ms, missed_before_ms - 1, MISFIRES_COUNTED)
    return Misfire(min(counted, MISFIRES_COUNTED), counted > MISFIRES_COUNTED, job.next_ms, last_ms, strategy)


def _strategy(job: DueJob) -> MisfireStrategy:
    try:
        strategy = MisfireStrategy(job.misfire_strategy)
    except ValueError as error:
        raise UnusableJobError(f"misfire_strategy {job.misfire_strategy!r} is unknown") from error
    if strategy is MisfireStrategy.FIRE_ALL:
        raise UnusableJobError("misfire_strategy FIRE_ALL is not supported yet")
    return strategy
