"""The demo's group and jobs, made through the API as any program would."""

from dataclasses import dataclass
from typing import Any, Final

from jobwheel.admin.api.instants import from_text
from jobwheel.cli.demo.places import APP_NAME
from jobwheel.cli.errors import RefusedError
from jobwheel.cli.rest import Rest
from jobwheel.schedule import CronSchedule, FixRateSchedule, Schedule, parse_schedule


@dataclass(frozen=True, slots=True)
class SampleJob:
    """A job of the demo; its name tells it apart."""

    name: str
    schedule_type: str
    schedule_conf: str
    handler: str
    parameter: str = ""


SAMPLES: Final = (
    SampleJob("Every second", "CRON", "* * * * * ?", "tick"),
    SampleJob("Every 5 seconds", "FIX_RATE", "5", "summarise", "one job says how many words its parameter has"),
    SampleJob("3 seconds after its end", "FIX_DELAY", "3", "tidy"),
    SampleJob("Async, every 4 seconds", "CRON", "0/4 * * * * ?", "fetch"),
    SampleJob("Fails now and then", "FIX_RATE", "3", "flaky"),
)


@dataclass(frozen=True, slots=True)
class WatchedJob:
    """A sample job under way.

    Attributes:
        schedule: when it must run; None if that depends on how long its runs take.
        first_ms: the first instant after its start, epoch milliseconds; None as for `schedule`.
        version: of the job when it was started: an edited job is not judged.
    """

    id: int
    name: str
    schedule: Schedule | None
    first_ms: int | None
    version: int


def make_group(rest: Rest) -> int:
    """The id of the demo's group, which is made if it is not there."""
    try:
        made = rest.post("/api/v1/groups", {"app_name": APP_NAME, "title": "Demo"})
        return int(made["id"])
    except RefusedError as error:
        if error.reason != "taken":
            raise
    groups = _all(rest, "/api/v1/groups", {})
    return int(next(group["id"] for group in groups if group["app_name"] == APP_NAME))


def make_jobs(rest: Rest, group_id: int) -> list[int]:
    """The ids of the sample jobs; those that are not there are made. All of them are stopped then."""
    there = {job["name"]: job for job in _all(rest, "/api/v1/jobs", {"group_id": group_id})}
    ids = []
    for sample in SAMPLES:
        job = there.get(sample.name) or rest.post("/api/v1/jobs", _body(sample, group_id))
        if job["status"] == "running":
            rest.post(f"/api/v1/jobs/{job['id']}/stop")
        ids.append(int(job["id"]))
    return ids


def start_jobs(rest: Rest, job_ids: list[int], zone: str) -> list[WatchedJob]:
    """Start the jobs; `zone` is the installation's."""
    return [_watched(rest.post(f"/api/v1/jobs/{job_id}/start"), zone) for job_id in job_ids]


def stop_jobs(rest: Rest, job_ids: list[int]) -> None:
    """Stop the jobs' schedules."""
    for job_id in job_ids:
        rest.post(f"/api/v1/jobs/{job_id}/stop")


def has_live_executor(rest: Rest, group_id: int) -> bool:
    """Whether an executor of the group is registered."""
    return bool(rest.get(f"/api/v1/groups/{group_id}")["live_addresses"])


def _body(sample: SampleJob, group_id: int) -> dict[str, object]:
    return {
        "group_id": group_id,
        "name": sample.name,
        "author": "jobwheel demo",
        "schedule_type": sample.schedule_type,
        "schedule_conf": sample.schedule_conf,
        "handler": sample.handler,
        "parameter": sample.parameter,
    }


def _watched(job: dict[str, Any], zone: str) -> WatchedJob:
    schedule = parse_schedule(
        job["schedule_type"],
        job["schedule_conf"],
        zone=job["time_zone"] or zone,
        anchor_ms=from_text("anchor_at", job["anchor_at"]),
    )
    first_ms = from_text("next_planned_at", job["next_planned_at"])
    if first_ms is None or not isinstance(schedule, CronSchedule | FixRateSchedule):
        return WatchedJob(job["id"], job["name"], None, None, job["version"])
    return WatchedJob(job["id"], job["name"], schedule, first_ms, job["version"])


def _all(rest: Rest, path: str, query: dict[str, object]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        page = rest.get(path, {**query, "limit": 500, "after": after})
        items += page["items"]
        after = page["next"]
        if after is None:
            return items
