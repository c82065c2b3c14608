"""What the verdict is made from: the admin's runs and events, the executor's own record."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from jobwheel.admin.api.instants import from_text
from jobwheel.cli.demo.sample_jobs import WatchedJob
from jobwheel.cli.demo.verdict import Seen, SeenRun, Span
from jobwheel.cli.rest import Rest
from jobwheel.kernel.instants import instant_text

_BY_SCHEDULE: Final = ("CRON", "MISFIRE")
_MISFIRED: Final = "job.misfired"


def read_runs(rest: Rest, group_id: int, from_ms: int, end_ms: int) -> list[SeenRun]:
    """The runs of the group that were planned from `from_ms` to `end_ms`, both included."""
    query = {
        "group_id": group_id,
        "planned_from": instant_text(from_ms),
        "planned_until": instant_text(end_ms + 1),
        "limit": 500,
    }
    runs: list[SeenRun] = []
    after: str | None = None
    while True:
        page = rest.get("/api/v1/runs", {**query, "after": after})
        runs += [_seen(run) for run in page["items"]]
        after = page["next"]
        if after is None:
            return runs


def read_misfires(rest: Rest, job_id: int, from_ms: int) -> list[Span]:
    """The misfires that were recorded for a job since `from_ms`."""
    spans: list[Span] = []
    after: str | None = None
    while True:
        page = rest.get(f"/api/v1/jobs/{job_id}/events", {"limit": 500, "after": after})
        for event in page["items"]:
            if _ms(event["at"]) < from_ms:
                return spans
            if event["kind"] == _MISFIRED:
                spans.append(Span(_ms(event["details"]["from"]), _ms(event["details"]["until"])))
        after = page["next"]
        if after is None:
            return spans


def unedited(rest: Rest, jobs: Collection[WatchedJob]) -> list[WatchedJob]:
    """The jobs that nobody edited or stopped since they were started: of the others the instants are not known."""
    return [job for job in jobs if rest.get(f"/api/v1/jobs/{job.id}")["version"] == job.version]


def read_executions(path: Path) -> Counter[int]:
    """How often the executor began each run."""
    return Counter(int(line) for line in path.read_text("ascii").split())


def gather(rest: Rest, jobs: Collection[WatchedJob], group_id: int, span: Span, executions: Path) -> Seen:
    """Everything of the time from `span.from_ms` to `span.until_ms`."""
    wanted = {job.id for job in jobs}
    return Seen(
        runs=[run for run in read_runs(rest, group_id, span.from_ms, span.until_ms) if run.job_id in wanted],
        misfires={job.id: read_misfires(rest, job.id, span.from_ms) for job in jobs},
        executions=read_executions(executions),
        end_ms=span.until_ms,
    )


def _seen(run: dict[str, Any]) -> SeenRun:
    return SeenRun(
        id=run["id"],
        job_id=run["job_id"],
        planned_ms=_ms(run["planned_at"]),
        due_ms=_ms(run["due_at"]),
        sent_ms=from_text("sent_at", run["sent_at"]),
        outcome=run["outcome"],
        by_schedule=run["trigger_type"] in _BY_SCHEDULE,
    )


def _ms(instant: str) -> int:
    return from_text("instant", instant)
