"""`jobwheel run`: one run of a job, for pipelines."""

from typing import Annotated

import typer

from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.follow import INTERRUPTED_CODE, Follower
from jobwheel.cli.job_names import JobArgument, find_job
from jobwheel.cli.output import print_json, tell
from jobwheel.cli.rest import Rest

ParameterOption = Annotated[
    str | None, typer.Option("--parameter", "-p", show_default=False, help="In place of the job's own.")
]
AddressOption = Annotated[
    list[str] | None,
    typer.Option("--address", show_default=False, help="An executor of the group [default: the job's route]."),
]
FollowOption = Annotated[
    bool,
    typer.Option("--follow", "-f", help="Print what it writes until it has ended, and end as it did."),
]


def run(
    job: JobArgument,
    url: UrlOption = None,
    parameter: ParameterOption = None,
    address: AddressOption = None,
    follow: FollowOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a job once, now.

    With --follow the exit code tells how the run ended, after all its retries: 0 succeeded, 10 failed, 11 timed out,
    12 killed, 13 lost, 14 covered by a later run, 15 discarded, 16 gone (its job was deleted). Ctrl-C ends the
    following, not the run (130).
    """
    with signed_in(url) as rest:
        run_once(rest, find_job(rest, job), parameter, address or [], follow=follow, as_json=as_json)


def run_once(
    rest: Rest, job_id: int, parameter: str | None, addresses: list[str], *, follow: bool, as_json: bool
) -> None:
    """Run a job and say what came of it."""
    if follow and as_json:
        raise typer.BadParameter("--follow prints the run's log, so it does not go with --json")
    made = rest.post(f"/api/v1/jobs/{job_id}/run", {"parameter": parameter, "addresses": addresses})
    if as_json:
        print_json(made)
    elif follow:
        raise typer.Exit(follow_run(rest, made["id"]))
    else:
        print(f"run {made['id']}")
        tell(f"read what it writes: jobwheel runs log {made['id']} --follow")


def follow_run(rest: Rest, run_id: int) -> int:
    """Follow a run; return the exit code. Who interrupts this is told that the run goes on."""
    try:
        return Follower(rest).follow(run_id)
    except KeyboardInterrupt:
        tell(f"run {run_id} goes on; read on: jobwheel runs log {run_id} --follow")
        return INTERRUPTED_CODE
