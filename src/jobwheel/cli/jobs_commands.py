"""`jobwheel jobs …`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.group_names import GROUP_WAYS, find_group_if
from jobwheel.cli.job_names import JobArgument, find_job
from jobwheel.cli.output import counted_runs, local_time, page_note, print_json, print_table, print_text
from jobwheel.cli.runs_commands import ByJobOption

_COLUMNS = ("id", "status", "name", "schedule", "handler", "next run", "running", "last run", "result", "took")


def list_jobs(
    *,
    url: UrlOption = None,
    name: Annotated[str | None, typer.Option("--name", help="Only names that hold this text.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only these: running or stopped.")] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="Only jobs of this handler.")] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help=f"Only jobs of this group: {GROUP_WAYS}.")
    ] = None,
    tag: Annotated[str | None, typer.Option("--tag", help="Only jobs with this tag.")] = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs."""
    query = {"name": name, "status": status, "handler": handler, "tag": tag, "limit": limit, "after": after}
    with signed_in(url) as rest:
        query["group_id"] = find_group_if(rest, group)
        page = rest.get("/api/v1/jobs", query)
    if as_json:
        print_json(page)
        return
    print_table(_COLUMNS, [_row(job) for job in page["items"]], "there are no such jobs")
    page_note(page)


def kill_job_runs(
    job: JobArgument, url: UrlOption = None, by_job: ByJobOption = False, as_json: JsonOption = False
) -> None:
    """End all runs of a job that wait or run."""
    with signed_in(url) as rest:
        job_id = find_job(rest, job)
        killed = rest.post(f"/api/v1/jobs/{job_id}/kill-runs", {"by_job": by_job})
    if as_json:
        print_json(killed)
    else:
        print(f"job {job_id}: {counted_runs(killed['count'])} to end")


def job_script(
    job: JobArgument,
    url: UrlOption = None,
    version: Annotated[
        int | None, typer.Option("--version", min=1, show_default=False, help="An older one, by its id in the API.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", show_default=False, help="Save this file as the script.")
    ] = None,
    remark: Annotated[
        str | None, typer.Option("--remark", "-m", show_default=False, help="With --save: what has changed.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print a job's script, or save it; what is saved applies from the next run."""
    if (save is None) != (remark is None) or (save is not None and version is not None):
        raise typer.BadParameter("--save and --remark go together, and not with --version")
    body = None if save is None else {"source": _source(save), "remark": remark}
    with signed_in(url) as rest:
        job_id = find_job(rest, job)
        path = f"/api/v1/jobs/{job_id}/script"
        if body is not None:
            script = rest.put(path, body)
        else:
            script = rest.get(path if version is None else f"{path}/versions/{version}")
    if as_json:
        print_json(script)
    elif body is not None:
        print(f"the script of job {job_id} is saved; it applies from the next run")
    else:
        # As it is, so that it can be written to a file.
        print_text(script["source"])


def _source(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8: {error}") from error


def _row(job: dict[str, Any]) -> tuple[object, ...]:
    schedule = f"{job['schedule_type']} {job['schedule_conf']}".strip()
    next_run = local_time(job["next_planned_at"])
    last = job["last_run"] or {"ended_at": None, "outcome": "", "took_ms": None}
    took = "" if last["took_ms"] is None else f"{last['took_ms'] / 1000:.3f} s"
    of_last = (local_time(last["ended_at"]), last["outcome"], took)
    return (job["id"], job["status"], job["name"], schedule, job["handler"], next_run, job["running_now"], *of_last)
