"""`jobwheel reports …`."""

from typing import Annotated, Any

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.group_names import GroupRunsOption, find_group_if
from jobwheel.cli.job_names import JobArgument, find_job
from jobwheel.cli.output import local_time, print_json, print_table, tell

DaysOption = Annotated[int, typer.Option("--days", "-n", min=1, help="How many, today the last of them.")]

_DAILY = ("day", "group", "running", "succeeded", "failed")
_JOB = ("day", "runs", "outcomes", "late p50", "p95", "p99", "most", "took p50", "p95", "p99", "most")


def daily(
    *,
    url: UrlOption = None,
    days: DaysOption = 3,
    group: GroupRunsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print how many runs each day had, and how they ended."""
    with signed_in(url) as rest:
        report = rest.get("/api/v1/reports/daily", {"days": days, "group_id": find_group_if(rest, group)})
    if as_json:
        print_json(report)
        return
    rows = [row for day in report["days"] for row in _daily_rows(day)]
    print_table(_DAILY, rows, "")
    counted = local_time(report["counted_at"]) or "not all of it yet"
    tell(f"days of {report['time_zone']}; counted: {counted}")


def job_statistics(
    job: JobArgument,
    *,
    url: UrlOption = None,
    days: DaysOption = 7,
    as_json: JsonOption = False,
) -> None:
    """Print how a job's runs ended, how late they were sent and how long they took."""
    with signed_in(url) as rest:
        report = rest.get(f"/api/v1/jobs/{find_job(rest, job)}/statistics", {"days": days})
    if as_json:
        print_json(report)
        return
    rows = [_job_row(day["day"], day) for day in report["days"]]
    if len(rows) > 1:
        rows.append(_job_row("all", report["total"]))
    print_table(_JOB, rows, "no run of it has ended in these days")


def _daily_rows(day: dict[str, Any]) -> list[tuple[object, ...]]:
    def row(name: object, counts: dict[str, Any]) -> tuple[object, ...]:
        return (day["day"], name, counts["running"], counts["succeeded"], counts["failed"])

    return [row("all", day), *(row(each["group_id"], each) for each in day["groups"])]


def _job_row(name: str, statistics: dict[str, Any]) -> tuple[object, ...]:
    outcomes = ", ".join(f"{count} {outcome}" for outcome, count in statistics["outcomes"].items())
    spans = [
        _seconds(statistics[what][part])
        for what in ("lateness", "duration")
        for part in ("p50_ms", "p95_ms", "p99_ms", "most_ms")
    ]
    return (name, statistics["count"], outcomes, *spans)


def _seconds(milliseconds: int | None) -> str:
    return "" if milliseconds is None else f"{milliseconds / 1000:.3f} s"
