"""What an admin of XXL-JOB, in Java, cannot honour of what Jobwheel keeps (`storage.md`, Beside a Java admin)."""

from collections.abc import Iterator
from dataclasses import dataclass

from jobwheel.admin.domain.alarm import JobAlarms
from jobwheel.admin.domain.job import JobSettings
from jobwheel.admin.domain.policies import MisfireStrategy, RetryBackoff, RouteStrategy, UncertainSend
from jobwheel.schedule import ScheduleType


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that a Java admin does not know: what it is, and what that one does instead.

    `is_grave`: runs come at other times, too often or not at all, or executors are not let in.
    """

    what: str
    effect: str
    is_grave: bool = True


def losses_of(settings: JobSettings, zone: str, now_ms: int) -> list[Loss]:
    """What a job loses; `zone` is the installation's. What is over by `now_ms` is no loss."""
    return [*_of_schedule(settings, zone, now_ms), *_of_runs(settings), *_minor(settings)]


def _of_schedule(settings: JobSettings, zone: str, now_ms: int) -> Iterator[Loss]:
    if settings.schedule_type in (ScheduleType.FIX_DELAY, ScheduleType.ONCE):
        yield Loss("schedule_type", f"knows no {settings.schedule_type}, and stops the job")
    if settings.misfire_strategy is MisfireStrategy.FIRE_ALL:
        yield Loss("misfire_strategy", "knows no FIRE_ALL, and makes up for nothing")
    if settings.time_zone not in (None, zone):
        yield Loss("time_zone", f"reads its times in its own zone, not in {settings.time_zone}")
    if settings.valid_from_ms is not None and settings.valid_from_ms > now_ms:
        yield Loss("valid_from", "runs it before as well")
    if settings.valid_until_ms is not None:
        yield Loss("valid_until", "runs it afterwards as well")
    if any(each.until_ms > now_ms for each in settings.pause_windows):
        yield Loss("pause_windows", "runs it in them as well")


def _of_runs(settings: JobSettings) -> Iterator[Loss]:
    if settings.run_limit is not None:
        yield Loss("run_limit", "sends as many runs at once as come")
    if settings.retry_count and (settings.retry_interval_s or settings.retry_backoff is RetryBackoff.DOUBLING):
        yield Loss("retry_interval_s", "tries failures again at once")
    if settings.child_job_ids and settings.route_strategy is RouteStrategy.SHARDING_BROADCAST:
        yield Loss("child_job_ids", "starts the children once for each shard")


def _minor(settings: JobSettings) -> Iterator[Loss]:
    if settings.alarms != JobAlarms():
        yield Loss("alarm_settings", "mails each failed attempt to alarm_email, and nothing else", is_grave=False)
    if settings.uncertain_send is UncertainSend.SEND_AGAIN:
        yield Loss("uncertain_send", "never sends a run again", is_grave=False)
    if settings.retention_days is not None:
        yield Loss("retention_days", "keeps all runs for one number of days", is_grave=False)
    if settings.key is not None:
        yield Loss("key", "keeps it, and knows no job by it: files of jobs are of no use", is_grave=False)
    if settings.tags:
        yield Loss("tags", "keeps them, and does not show them", is_grave=False)
