"""`jobwheel runs clean-up …`."""

import threading
from typing import Annotated, Any

import typer

from jobwheel.admin.domain.clean_up import CleanUpWhich
from jobwheel.cli.access import JsonOption, UrlOption, signed_in
from jobwheel.cli.group_names import GroupRunsOption, find_group_if
from jobwheel.cli.job_names import JobOption, find_job
from jobwheel.cli.output import print_json, tell
from jobwheel.cli.rest import Rest

_FOLLOW_S = 1.0
_PATH = "/api/v1/runs/clean-up"
_NAMES = ", ".join(each.value.replace("_", "-") for each in CleanUpWhich)


def clean_up(
    which: Annotated[str | None, typer.Argument(metavar="WHICH", show_default=False, help=f"One of {_NAMES}.")] = None,
    *,
    url: UrlOption = None,
    group: GroupRunsOption = None,
    job: JobOption = None,
    show: Annotated[int | None, typer.Option("--show", min=1, metavar="ID", help="How far this one is.")] = None,
    cancel: Annotated[int | None, typer.Option("--cancel", min=1, metavar="ID", help="End this one.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until it has ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove runs that are done from the run log."""
    if sum(each is not None for each in (which, show, cancel)) != 1:
        raise typer.BadParameter(f"say which runs go ({_NAMES}), or --show ID, or --cancel ID")
    with signed_in(url) as rest:
        if which is not None:
            job_id = None if job is None else find_job(rest, job)
            body = {"which": which.replace("-", "_"), "group_id": find_group_if(rest, group), "job_id": job_id}
            found = rest.post(_PATH, body)
        elif cancel is not None:
            found = rest.post(f"{_PATH}/{cancel}/cancel")
        else:
            found = rest.get(f"{_PATH}/{show}")
        if follow:
            found = _follow(rest, found)
    if as_json:
        print_json(found)
        return
    print(_words(found))
    if which is not None and not follow:
        tell(f"see how far it is: jobwheel runs clean-up --show {found['id']} --follow")


def _follow(rest: Rest, found: dict[str, Any]) -> dict[str, Any]:
    while found["ended_at"] is None:
        tell(_words(found))
        threading.Event().wait(_FOLLOW_S)
        found = rest.get(f"{_PATH}/{found['id']}")
    return found


def _words(found: dict[str, Any]) -> str:
    return f"clean-up {found['id']} is {found['state']}: {found['deleted']} of about {found['about']} runs are removed"
