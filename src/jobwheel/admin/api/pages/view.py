"""What the status page shows, as texts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.services import Services
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Run
from jobwheel.admin.engine.figures import HealthReason
from jobwheel.admin.services.groups import GroupView
from jobwheel.admin.services.job_plan import planned_next_ms, schedule_of
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.schedule import Language, ScheduleError, ScheduleType

REFRESH_S: Final = 5
_NOTHING: Final = "\N{EN DASH}"
_MOST_GROUPS: Final = 100
_MOST_JOBS: Final = 200
_MOST_RUNS: Final = 50


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job's line; `zone` is empty where it does not matter."""

    id: int
    name: str
    group: str
    schedule: str
    raw_schedule: str
    zone: str
    running: bool
    next_at: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run's line. `state` is the outcome, or the phase of a run that is not done."""

    id: int
    job: str
    planned_at: str
    state: str
    kind: str
    trigger: str
    lateness: str
    duration: str
    address: str
    message: str


@dataclass(frozen=True, slots=True)
class StatusView:
    """The whole page."""

    now: str
    reasons: tuple[HealthReason, ...]
    groups: tuple[GroupView, ...]
    jobs: tuple[JobRow, ...]
    more_jobs: bool
    runs: tuple[RunRow, ...]
    refresh_s: int = REFRESH_S


async def status_view(services: Services, language: Language, caller: Caller) -> StatusView:
    """Look once at everything that the caller may see."""
    visible = caller.group_ids
    groups = await services.groups.page(0, _MOST_GROUPS, visible)
    jobs = await services.jobs.page(JobFilter(group_ids=visible), 0, _MOST_JOBS + 1)
    runs = await services.runs.page(RunFilter(group_ids=visible), None, _MOST_RUNS)
    group_names: dict[int, str] = {view.group.id: view.group.app_name for view in groups}
    job_names: dict[int, str] = {job.id: job.settings.name for job in jobs}
    return StatusView(
        now=_moment(services.clock.now()),
        reasons=tuple(services.status.reasons()),
        groups=tuple(groups),
        jobs=tuple(_job_row(job, group_names, services.zone_name, language) for job in jobs[:_MOST_JOBS]),
        more_jobs=len(jobs) > _MOST_JOBS,
        runs=tuple(_run_row(run, job_names) for run in runs),
    )


def _job_row(job: Job, group_names: Mapping[int, str], zone: str, language: Language) -> JobRow:
    settings = job.settings
    try:
        words = schedule_of(settings, zone).describe(language)
    except ScheduleError as error:
        words = f"unusable: {error.message}"
    next_ms = planned_next_ms(job)
    awaits_end = job.running and job.next_ms == AWAITING_SETTLEMENT_MS
    return JobRow(
        id=job.id,
        name=settings.name,
        group=group_names.get(settings.group_id, f"group {settings.group_id}"),
        schedule=words,
        raw_schedule=f"{settings.schedule_type} {settings.schedule_conf}".strip(),
        zone=(settings.time_zone or zone) if settings.schedule_type is ScheduleType.CRON else "",
        running=job.running,
        next_at="after the run under way" if awaits_end else _moment(next_ms),
    )


def _run_row(run: Run, job_names: Mapping[int, str]) -> RunRow:
    state = run.outcome or run.phase or "unknown"
    return RunRow(
        id=run.id,
        job=job_names.get(run.job_id, f"job {run.job_id}"),
        planned_at=_moment(run.planned_ms),
        state=state.replace("_", " "),
        kind=_kind(run),
        trigger=(run.trigger_type or "").lower(),
        lateness=_span(run.due_ms, run.sent_ms),
        duration=_span(run.accepted_ms or run.sent_ms, run.ended_ms),
        address=run.executor_address or "",
        message=(run.handle_message or _reason(run))[:300],
    )


def _kind(run: Run) -> str:
    """Good, bad, open; idle is what somebody, or the job's own settings, wanted so."""
    if run.outcome is None:
        return "open"
    return {"succeeded": "good", "killed": "idle", "covered": "idle", "discarded": "idle"}.get(run.outcome, "bad")


def _reason(run: Run) -> str:
    """Why a run ended that says nothing itself: the last line of its dispatch, and what came of it."""
    lines = (run.trigger_message or "").strip().splitlines()
    if run.outcome in (None, "succeeded") or not lines:
        return ""
    at = next((at for at in reversed(range(len(lines))) if not lines[at].startswith("\u2192 ")), 0)
    return "\n".join(lines[at:])


def _moment(instant_ms: int | None) -> str:
    """`2026-11-27 02:30:00.000`, in UTC."""
    text = to_text(instant_ms)
    return _NOTHING if text is None else text.replace("T", " ").removesuffix("Z")


def _span(from_ms: int | None, until_ms: int | None) -> str:
    """`12 ms`, `3.4 s`, `2 min 5 s`."""
    if from_ms is None or until_ms is None:
        return _NOTHING
    span_ms = max(0, until_ms - from_ms)
    if span_ms < 1000:
        return f"{span_ms} ms"
    if span_ms < 60_000:
        return f"{span_ms / 1000:.1f} s"
    minutes, seconds = divmod(span_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
