"""The events of a job's changes: what was before, what is after, what was taken back."""

from collections.abc import Sequence
from dataclasses import fields
from enum import Enum

from jobwheel.admin.domain.alarm import JobAlarms
from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.job import Job, JobSettings
from jobwheel.admin.services.job_plan import MOST_COUNTED, Missed
from jobwheel.admin.store.runs import RemovedRun
from jobwheel.kernel.instants import instant_text

_MOST_LISTED = 100


def settings_details(settings: JobSettings) -> dict[str, object]:
    """All settings of a job, as JSON values."""
    details = {each.name: _json(getattr(settings, each.name)) for each in fields(settings)}
    # Instants that somebody will want to read, under the names that they are given by.
    for name in ("valid_from", "valid_until"):
        instant_ms = getattr(settings, f"{name}_ms")
        del details[f"{name}_ms"]
        details[name] = None if instant_ms is None else instant_text(instant_ms)
    del details["alarms"]
    details["alarm_settings"] = alarm_details(settings.alarms)
    details["pause_windows"] = [
        {"from": instant_text(each.from_ms), "until": instant_text(each.until_ms), "remark": each.remark}
        for each in settings.pause_windows
    ]
    return details


def alarm_details(alarms: JobAlarms) -> dict[str, object]:
    """What a job's people are told of, as JSON values under the names that they are given by."""
    return {
        "channel_ids": list(alarms.channel_ids),
        "failures": alarms.failures.value,
        "also": [each.value for each in alarms.also],
        "success_after_failure": alarms.success_after_failure,
        "late_start_s": alarms.late_start_s,
        "long_run_s": alarms.long_run_s,
        "most_open_runs": alarms.most_open_runs,
    }


def changes_event(old: Job, new: Job, actor: str, at_ms: int) -> NewEvent:
    """An edit: the fields that changed, before and after."""
    before, after = settings_details(old.settings), settings_details(new.settings)
    before["running"], after["running"] = old.running, new.running
    changed = [name for name in before if before[name] != after[name]]
    details = {
        "before": {name: before[name] for name in changed},
        "after": {name: after[name] for name in changed},
    }
    return NewEvent(EventKind.JOB_UPDATED, at_ms, actor, new.settings.group_id, new.id, None, details)


def removed_event(job: Job, removed: Sequence[RemovedRun], actor: str, at_ms: int, cause: str) -> list[NewEvent]:
    """The runs that were pending and are not any more; nothing if there were none."""
    if not removed:
        return []
    details = {
        "cause": cause,
        "count": len(removed),
        "runs": [{"id": each.id, "planned_at": instant_text(each.planned_ms)} for each in removed[:_MOST_LISTED]],
    }
    return [NewEvent(EventKind.RUN_REMOVED, at_ms, actor, job.settings.group_id, job.id, None, details)]


def missed_event(job: Job, missed: Missed | None, actor: str, at_ms: int, cause: str) -> list[NewEvent]:
    """Instants that had come, were not claimed yet, and will not run because of an edit or a stop."""
    if missed is None:
        return []
    details = {
        "count": min(missed.count, MOST_COUNTED),
        "more": missed.count > MOST_COUNTED,
        "from": instant_text(missed.first_ms),
        "until": instant_text(missed.last_ms),
        "done": f"dropped by {cause}",
    }
    return [NewEvent(EventKind.JOB_MISFIRED, at_ms, actor, job.settings.group_id, job.id, None, details)]


def _json(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value
