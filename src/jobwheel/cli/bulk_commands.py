"""`jobwheel jobs run`, `start` and `stop`, of one job or of many, and `jobs backfill` and `runs rerun`."""

from typing import Annotated, Any

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.group_names import GROUP_WAYS, find_group
from jobwheel.cli.job_names import JobArgument, JobOption, JobsArgument, find_job, find_jobs
from jobwheel.cli.output import counted_runs, local_time, one_line, print_json, print_table, tell
from jobwheel.cli.rest import Rest
from jobwheel.cli.run_command import AddressOption, FollowOption, ParameterOption, run_once

GroupOption = Annotated[
    str | None,
    typer.Option("--group", metavar="GROUP", show_default=False, help=f"All jobs of this group: {GROUP_WAYS}."),
]
TagOption = Annotated[str | None, typer.Option("--tag", show_default=False, help="All jobs with this tag.")]
NameOption = Annotated[
    str | None, typer.Option("--name", show_default=False, help="All jobs whose name holds this text.")
]
AllOption = Annotated[bool, typer.Option("--all", help="All jobs.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only tell what would be done.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

_PATIENCE_S = 300.0
_REFUSED_CODE = 1
_COLUMNS = ("job", "name", "result", "run", "why")


def run_jobs(
    *,
    jobs: JobsArgument = None,
    url: UrlOption = None,
    group: GroupOption = None,
    tag: TagOption = None,
    name: NameOption = None,
    every: AllOption = False,
    parameter: ParameterOption = None,
    address: AddressOption = None,
    follow: FollowOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run jobs once, now. With --follow the exit code is that of `jobwheel run`."""
    chosen = _chosen(jobs, group, tag, name, every=every)
    with signed_in(url) as rest:
        ids = _find(rest, chosen)
        if len(ids) == len(chosen) == 1 and not dry_run:
            run_once(rest, ids[0], parameter, address or [], follow=follow, as_json=as_json)
            return
        if follow or address:
            raise typer.BadParameter("--follow and --address are for a run of one job")
        _change(rest, {"action": "run", **chosen, "parameter": parameter, "dry_run": dry_run}, as_json=as_json)


def start_jobs(
    *,
    jobs: JobsArgument = None,
    url: UrlOption = None,
    group: GroupOption = None,
    tag: TagOption = None,
    name: NameOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let jobs' schedules run."""
    _start_or_stop("start", _chosen(jobs, group, tag, name, every=every), url, dry_run=dry_run, as_json=as_json)


def stop_jobs(
    *,
    jobs: JobsArgument = None,
    url: UrlOption = None,
    group: GroupOption = None,
    tag: TagOption = None,
    name: NameOption = None,
    every: AllOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Stop jobs' schedules; runs under way go on."""
    _start_or_stop("stop", _chosen(jobs, group, tag, name, every=every), url, dry_run=dry_run, as_json=as_json)


def backfill_job(
    *,
    job: JobArgument,
    url: UrlOption = None,
    from_: Annotated[
        str | None, typer.Option("--from", show_default=False, help="The first time, such as 2026-11-01T00:00:00Z.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", show_default=False, help="Before this time, which is past as well.")
    ] = None,
    interval: Annotated[float, typer.Option("--interval", min=0, help="Seconds from one run to the next.")] = 1.0,
    parameter: ParameterOption = None,
    in_pauses: Annotated[bool, typer.Option("--in-pauses", help="Times in pause windows as well.")] = False,
    only_missing: Annotated[bool, typer.Option("--only-missing", help="Only times that have no run yet.")] = False,
    dry_run: DryRunOption = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Remove the runs that have not been sent.")] = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a job for past times of its schedule."""
    if cancel == (from_ is not None and until is not None):
        raise typer.BadParameter("give --from and --until, or --cancel alone")
    with signed_in(url) as rest:
        path = f"/api/v1/jobs/{find_job(rest, job)}/backfill"
        if cancel:
            removed = rest.delete(path)
            print_json(removed) if as_json else print(f"{counted_runs(removed['removed'])} removed")
            return
        body = {"from": from_, "until": until, "interval_s": interval, "parameter": parameter}
        body |= {"in_pauses": in_pauses, "only_missing": only_missing}
        told = rest.post(path, {**body, "dry_run": True}, timeout_s=_PATIENCE_S)
        if not as_json:
            _print_backfill(told)
        if not dry_run and told["count"]:
            if not yes:
                typer.confirm("make these runs?", abort=True, err=True)
            told = rest.post(path, body, timeout_s=_PATIENCE_S)
            tell(f"{counted_runs(told['count'])} made")
    if as_json:
        print_json(told)


def rerun(
    *,
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID]...", min=1, help="The runs' ids.", show_default=False)
    ] = None,
    url: UrlOption = None,
    job: JobOption = None,
    outcome: Annotated[
        str | None, typer.Option("--outcome", show_default=False, help="Runs that ended so, such as failed.")
    ] = None,
    from_: Annotated[str | None, typer.Option("--from", show_default=False, help="Planned from this time on.")] = None,
    until: Annotated[str | None, typer.Option("--until", show_default=False, help="Planned before this time.")] = None,
    dry_run: DryRunOption = False,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run once more what has ended, with the parameters and planned times that it had."""
    body: dict[str, Any] = {"run_ids": ids or [], "outcome": outcome, "planned_from": from_, "planned_until": until}
    if not any([job, *body.values()]):
        raise typer.BadParameter("say which runs: by ids, --job, --outcome, --from or --until")
    with signed_in(url) as rest:
        body["job_id"] = None if job is None else find_job(rest, job)
        told = rest.post("/api/v1/runs/rerun", {**body, "dry_run": True}, timeout_s=_PATIENCE_S)
        if not dry_run and told["runs"]:
            if not yes and not ids:
                tell(f"these are {len(told['runs'])} runs")
                typer.confirm("run them again?", abort=True, err=True)
            told = rest.post("/api/v1/runs/rerun", body, timeout_s=_PATIENCE_S)
    if as_json:
        print_json(told)
        return
    rows = [(each["repeats"], each["job_id"], local_time(each["planned_at"]), each["run_id"]) for each in told["runs"]]
    print_table(("repeats", "job", "planned", "run"), rows, "there are no such runs")


def _chosen(
    jobs: list[str] | None, group: str | None, tag: str | None, name: str | None, *, every: bool
) -> dict[str, Any]:
    chosen = {"ids": jobs or [], "group_id": group, "tag": tag, "name": name, "all": every}
    # An empty name of a group is refused later: it must not make a change of all groups of what was to be of one.
    given = {what: value for what, value in chosen.items() if value or (what == "group_id" and value is not None)}
    if not given:
        raise typer.BadParameter("say which jobs: each by itself, or --group, --tag, --name or --all")
    return given


def _find(rest: Rest, chosen: dict[str, Any]) -> list[int]:
    """The ids of the jobs that are named one by one; ids take the place of what jobs and groups were called by."""
    if "group_id" in chosen:
        chosen["group_id"] = find_group(rest, chosen["group_id"])
    if "ids" in chosen:
        chosen["ids"] = find_jobs(rest, chosen["ids"])
    ids: list[int] = chosen.get("ids", [])
    return ids


def _start_or_stop(action: str, chosen: dict[str, Any], url: str | None, *, dry_run: bool, as_json: bool) -> None:
    with signed_in(url) as rest:
        ids = _find(rest, chosen)
        if len(ids) == len(chosen) == 1 and not dry_run:
            _tell_of(rest.post(f"/api/v1/jobs/{ids[0]}/{action}"), as_json=as_json)
        else:
            _change(rest, {"action": action, **chosen, "dry_run": dry_run}, as_json=as_json)


def _change(rest: Rest, body: dict[str, Any], *, as_json: bool) -> None:
    told = rest.post("/api/v1/jobs/bulk", body, timeout_s=_PATIENCE_S)
    if as_json:
        print_json(told)
    else:
        print_table(_COLUMNS, [_row(each) for each in told["jobs"]], "there are no such jobs")
    if any(each["result"] == "refused" for each in told["jobs"]):
        raise typer.Exit(_REFUSED_CODE)


def _row(job: dict[str, Any]) -> tuple[object, ...]:
    why = "" if job["error"] is None else job["error"]["message"]
    return (job["job_id"], job["name"], job["result"], job["run_id"], why)


def _tell_of(job: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(job)
        return
    next_run = f", next run {local_time(job['next_planned_at'])}" if job["next_planned_at"] else ""
    print(f"job {job['id']} ({one_line(job['name'])}) is {job['status']}{next_run}")


def _print_backfill(told: dict[str, Any]) -> None:
    skipped = f"; {told['skipped']} have a run already" if told["skipped"] else ""
    if not told["count"]:
        print(f"there is no planned time to make up for{skipped}")
        return
    first, last, due = (local_time(told[each]) for each in ("first_planned_at", "last_planned_at", "due_until"))
    runs = "1 run" if told["count"] == 1 else f"{told['count']} runs"
    print(f"{runs}, planned from {first} to {last}; the last one comes due {due}{skipped}")
