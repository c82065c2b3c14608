"""What an edit, a start or a stop does to a job's times. Pure: no store, no clock."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jobwheel.admin.domain.job import Job, JobSettings
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.services.errors import NeverFiresError
from jobwheel.schedule import (
    FixDelaySchedule,
    Language,
    Schedule,
    ScheduleError,
    ScheduleType,
    admitted,
    count_in,
    last_in,
    parse_schedule,
    with_closed_times,
    without_closed_times,
)

MOST_COUNTED = 10_000
_MOST_AHEAD_MS = 2 * 3_600_000


@dataclass(frozen=True, slots=True)
class Moment:
    """What is known about a job's runs while its row is held.

    Attributes:
        now_ms: the moment, epoch milliseconds.
        removed_ms: the planned times of the pending runs that were just removed, all later than `now_ms`.
        last_planned_ms: the last planned time that has a run still.
        has_open_runs: whether a run of the job is open, whatever caused it.
    """

    now_ms: int
    removed_ms: Sequence[int] = ()
    last_planned_ms: int | None = None
    has_open_runs: bool = False

    @property
    def base_ms(self) -> int:
        """Planning goes on after this: never again over what has a run, even if the clock was set back.

        A claim looks a minute ahead at most. What was planned for hours ahead came of a clock that was far wrong, and
        must not keep the job from running until then when somebody starts or changes it.
        """
        last_ms = self.last_planned_ms or 0
        return self.now_ms if last_ms - self.now_ms > _MOST_AHEAD_MS else max(self.now_ms, last_ms)


@dataclass(frozen=True, slots=True)
class Missed:
    """Planned times that had come but were not claimed yet; `count` stops at `MOST_COUNTED` + 1."""

    count: int
    first_ms: int
    last_ms: int


def schedule_of(settings: JobSettings, zone: str) -> Schedule:
    """A job's schedule within its validity period and outside its pause windows; `zone` is the installation's.

    Raises:
        ScheduleError: the settings make none; names the field.
    """
    schedule = parse_schedule(
        settings.schedule_type, settings.schedule_conf, zone=settings.time_zone or zone, anchor_ms=settings.anchor_ms
    )
    return with_closed_times(schedule, settings.closed_times)


def started(job: Job, zone: str, moment: Moment) -> Job:
    """The job, running from `moment` on.

    Raises:
        NeverFiresError: its schedule has no next time.
    """
    settings = with_anchor(job.settings, moment.now_ms)
    schedule = schedule_of(settings, zone)
    next_ms = _first_time(schedule, moment)
    if next_ms is None:
        raise _never_fires(settings, schedule, moment, "change that, then start it")
    return replace(job, settings=settings, running=True, next_ms=next_ms)


def with_anchor(settings: JobSettings, now_ms: int) -> JobSettings:
    """FIX_RATE counts from its first start, cut to whole seconds, unless it has an anchor already."""
    if settings.schedule_type is not ScheduleType.FIX_RATE or settings.anchor_ms is not None:
        return settings
    return replace(settings, anchor_ms=now_ms - now_ms % 1000)


def edited_settings(old: JobSettings, changes: dict[str, object], now_ms: int) -> JobSettings:
    """The settings after an edit: an interval that changes has a new anchor, unless one is given with it."""
    new = replace(old, **changes)  # type: ignore[arg-type]
    if "anchor_ms" in changes:
        return new
    if new.schedule_type is not ScheduleType.FIX_RATE:
        return replace(new, anchor_ms=None)
    if new.anchor_ms is not None and new.schedule_conf.strip() != old.schedule_conf.strip():
        return with_anchor(replace(new, anchor_ms=None), now_ms)
    return new


def changes_schedule(old: JobSettings, new: JobSettings) -> bool:
    """Whether an edit changes when the job runs."""
    return _timing(old) != _timing(new)


def needs_new_plan(old: JobSettings, new: JobSettings) -> bool:
    """Whether an edit takes back what is planned already (`behaviour.md`, Schedules)."""
    return changes_schedule(old, new) or old.parameter != new.parameter


def replanned(job: Job, new: JobSettings, zone: str, moment: Moment) -> Job:
    """The job after an edit that needs a new plan; what was planned after `moment` is removed already.

    A job that does not run stays so, unless it stopped by itself after planning an instant that is still to come.

    Raises:
        NeverFiresError: a running job would have no next time any more.
    """
    if not job.running and not moment.removed_ms:
        return replace(job, settings=new)
    new = with_anchor(new, moment.now_ms)
    schedule = schedule_of(new, zone)
    same_schedule = not changes_schedule(job.settings, new)
    next_ms = _kept_time(job, schedule, moment) if same_schedule else _new_time(job, new, schedule, moment)
    if next_ms is None and job.running:
        raise _never_fires(new, schedule, moment, "stop the job first")
    return replace(job, settings=new, running=next_ms is not None, next_ms=next_ms)


def missed_by(job: Job, zone: str, now_ms: int) -> Missed | None:
    """The planned times that a stop or a new schedule takes away though they had come."""
    if not job.running or job.next_ms is None or job.next_ms > now_ms:
        return None
    try:
        schedule = schedule_of(job.settings, zone)
    except ScheduleError:
        # The claim will find the same fault; there is nothing to count.
        return None
    first_ms = admitted(schedule, job.next_ms)
    if first_ms is None or first_ms > now_ms:
        return None
    last_ms = None if _waits_for_end(schedule) else last_in(schedule, first_ms - 1, now_ms)
    if last_ms is None:
        return Missed(1, first_ms, first_ms)
    return Missed(count_in(schedule, first_ms - 1, now_ms, MOST_COUNTED + 1), first_ms, last_ms)


def planned_next_ms(job: Job) -> int | None:
    """When the job's schedule fires next, epoch milliseconds; None while nobody can know, or if it never does.

    The end of a FIX_DELAY run sets a time that may lie in a pause window; the claim moves it, and so does this.
    """
    if job.next_ms is None or job.next_ms == AWAITING_SETTLEMENT_MS:
        return None
    if job.settings.schedule_type is not ScheduleType.FIX_DELAY:
        return job.next_ms
    return admitted(with_closed_times(FixDelaySchedule(1), job.settings.closed_times), job.next_ms)


def _never_fires(settings: JobSettings, schedule: Schedule, moment: Moment, what_to_do: str) -> NeverFiresError:
    """The refusal, with the schedule in words and the field that is to blame."""
    words = f"{settings.schedule_type}, {schedule.describe(Language.EN)}"
    bare_ms = without_closed_times(schedule).next_after(moment.base_ms)
    if bare_ms is None:
        field = "schedule_type" if settings.schedule_type is ScheduleType.NONE else "schedule_conf"
        return NeverFiresError(words, field, what_to_do)
    words += ", within its validity period and outside its pause windows"
    if settings.valid_until_ms is not None and bare_ms >= settings.valid_until_ms:
        return NeverFiresError(words, "valid_until", what_to_do)
    return NeverFiresError(words, "pause_windows" if settings.pause_windows else "valid_from", what_to_do)


def _first_time(schedule: Schedule, moment: Moment) -> int | None:
    if not _waits_for_end(schedule):
        return schedule.next_after(moment.base_ms)
    next_ms = schedule.next_after(moment.now_ms)
    return AWAITING_SETTLEMENT_MS if moment.has_open_runs and next_ms is not None else next_ms


def _new_time(job: Job, new: JobSettings, schedule: Schedule, moment: Moment) -> int | None:
    """The first time under a changed schedule; a FIX_DELAY whose interval did not change has waited for a while."""
    next_ms = _first_time(schedule, moment)
    if next_ms is None or next_ms == AWAITING_SETTLEMENT_MS or not _same_delay(job.settings, new):
        return next_ms
    bare_ms = without_closed_times(schedule).next_after(moment.now_ms)
    waited_for = [each for each in (*moment.removed_ms, job.next_ms, bare_ms) if each and each > moment.now_ms]
    return admitted(schedule, min(waited_for))


def _kept_time(job: Job, schedule: Schedule, moment: Moment) -> int | None:
    """The next time under an unchanged schedule: what was removed comes again, what is overdue stays due."""
    if _waits_for_end(schedule):
        if moment.has_open_runs:
            return AWAITING_SETTLEMENT_MS
        return min(moment.removed_ms) if moment.removed_ms else job.next_ms
    if job.running and job.next_ms is not None and job.next_ms <= moment.now_ms:
        return job.next_ms
    return schedule.next_after(moment.base_ms)


def _timing(settings: JobSettings) -> tuple[object, ...]:
    conf, closed = settings.schedule_conf.strip(), settings.closed_times
    return settings.schedule_type, conf, settings.time_zone, settings.anchor_ms, closed


def _same_delay(old: JobSettings, new: JobSettings) -> bool:
    delays = [each for each in (old, new) if each.schedule_type is ScheduleType.FIX_DELAY]
    return len(delays) == 2 and old.schedule_conf.strip() == new.schedule_conf.strip()


def _waits_for_end(schedule: Schedule) -> bool:
    return isinstance(without_closed_times(schedule), FixDelaySchedule)
