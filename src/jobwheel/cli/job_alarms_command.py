"""`jobwheel jobs alarms`."""

from typing import Annotated, Any

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.group_names import find_channels
from jobwheel.cli.job_names import JobArgument, find_job
from jobwheel.cli.output import one_line, print_json


def job_alarms(
    job: JobArgument,
    *,
    channels: Annotated[
        list[str] | None,
        typer.Option(
            "--channel",
            metavar="CHANNEL",
            show_default=False,
            help="Through which channels, each by its id or its name; 0 = the default ones.",
        ),
    ] = None,
    failures: Annotated[
        str | None, typer.Option("--failures", show_default=False, help="Of which failures: FINAL, EVERY or NONE.")
    ] = None,
    also: Annotated[
        list[str] | None,
        typer.Option("--also", show_default=False, help="Also of killed, covered, discarded; none = of none of them."),
    ] = None,
    success_after_failure: Annotated[
        bool | None, typer.Option("--success/--no-success", show_default=False, help="Of a success after a failure.")
    ] = None,
    late_start_s: Annotated[
        int | None, typer.Option("--late", min=0, metavar="SECONDS", show_default=False, help="Of late starts; 0 = no.")
    ] = None,
    long_run_s: Annotated[
        int | None, typer.Option("--long", min=0, metavar="SECONDS", show_default=False, help="Of long runs; 0 = no.")
    ] = None,
    most_open_runs: Annotated[
        int | None,
        typer.Option("--open", min=0, metavar="RUNS", show_default=False, help="Of more open runs than that; 0 = no."),
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a job's people are told of, or change what is given."""
    given = {
        "failures": failures,
        "also": None if also is None else [each for each in also if each != "none"],
        "success_after_failure": success_after_failure,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    limits = {"late_start_s": late_start_s, "long_run_s": long_run_s, "most_open_runs": most_open_runs}
    changes |= {name: limit or None for name, limit in limits.items() if limit is not None}
    with signed_in(url) as rest:
        if channels is not None:
            changes["channel_ids"] = [each for each in find_channels(rest, channels) if each]
        found = rest.get(f"/api/v1/jobs/{find_job(rest, job)}")
        if changes:
            body = {"alarm_settings": {**found["alarm_settings"], **changes}, "version": found["version"]}
            found = rest.patch(f"/api/v1/jobs/{found['id']}", body)
    if as_json:
        print_json(found["alarm_settings"])
        return
    print(f"job {found['id']} ({one_line(found['name'])})")
    for name, value in found["alarm_settings"].items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        print(f"  {name}: {'-' if shown in (None, '') else one_line(shown)}")
