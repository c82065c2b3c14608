"""`jobwheel jobs …`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from jobwheel.cli.access import AfterOption, JsonOption, LimitOption, UrlOption, signed_in
from jobwheel.cli.output import local_time, one_line, page_note, print_json, print_table, tell
from jobwheel.cli.runs_commands import print_log

JobId = Annotated[int, typer.Argument(metavar="ID", min=1, help="The job's id.")]

_COLUMNS = ("id", "status", "name", "schedule", "handler", "next run")


def list_jobs(
    *,
    url: UrlOption = None,
    name: Annotated[str | None, typer.Option("--name", help="Only names that hold this text.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only these: running or stopped.")] = None,
    handler: Annotated[str | None, typer.Option("--handler", help="Only jobs of this handler.")] = None,
    group: Annotated[int | None, typer.Option("--group", min=1, help="Only jobs of the group with this id.")] = None,
    limit: LimitOption = 50,
    after: AfterOption = None,
    as_json: JsonOption = False,
) -> None:
    """List jobs."""
    query = {"name": name, "status": status, "handler": handler, "group_id": group, "limit": limit, "after": after}
    with signed_in(url) as rest:
        page = rest.get("/api/v1/jobs", query)
    if as_json:
        print_json(page)
        return
    print_table(_COLUMNS, [_row(job) for job in page["items"]], "there are no such jobs")
    page_note(page)


def run_job(
    job_id: JobId,
    url: UrlOption = None,
    parameter: Annotated[
        str | None, typer.Option("--parameter", "-p", show_default=False, help="In place of the job's own.")
    ] = None,
    address: Annotated[
        list[str] | None,
        typer.Option("--address", show_default=False, help="An executor of the group [default: the job's route]."),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print what it writes until it has ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a job once, now."""
    if follow and as_json:
        raise typer.BadParameter("--follow prints the run's log, so it does not go with --json")
    with signed_in(url) as rest:
        run = rest.post(f"/api/v1/jobs/{job_id}/run", {"parameter": parameter, "addresses": address or []})
        if as_json:
            print_json(run)
        elif follow:
            print_log(rest, run["id"], follow=True)
        else:
            print(f"run {run['id']}")
            tell(f"read what it writes: jobwheel runs log {run['id']} --follow")


def start_job(job_id: JobId, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Let a job's schedule run."""
    _tell_of(_change(job_id, url, "start"), as_json)


def stop_job(job_id: JobId, url: UrlOption = None, as_json: JsonOption = False) -> None:
    """Stop a job's schedule; runs under way go on."""
    _tell_of(_change(job_id, url, "stop"), as_json)


def job_script(
    job_id: JobId,
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
    path = f"/api/v1/jobs/{job_id}/script"
    body = None if save is None else {"source": _source(save), "remark": remark}
    with signed_in(url) as rest:
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
        print(script["source"], end="")


def _source(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file} is not UTF-8: {error}") from error


def _change(job_id: int, url: str | None, change: str) -> dict[str, Any]:
    with signed_in(url) as rest:
        job: dict[str, Any] = rest.post(f"/api/v1/jobs/{job_id}/{change}")
    return job


def _tell_of(job: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    next_run = f", next run {local_time(job['next_planned_at'])}" if job["next_planned_at"] else ""
    print(f"job {job['id']} ({one_line(job['name'])}) is {job['status']}{next_run}")


def _row(job: dict[str, Any]) -> tuple[object, ...]:
    schedule = f"{job['schedule_type']} {job['schedule_conf']}".strip()
    return (job["id"], job["status"], job["name"], schedule, job["handler"], local_time(job["next_planned_at"]))
