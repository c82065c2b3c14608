"""`jobwheel db hand-back`: it works on the database, without a running admin."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from jobwheel.cli.access import JsonOption
from jobwheel.cli.options import DatabaseUrlOption, DataDirOption
from jobwheel.cli.output import print_json, print_table, tell

if TYPE_CHECKING:
    from jobwheel.admin.services.hand_back import HandBackReport

_COLUMNS = ("", "of", "what", "an admin of XXL-JOB")


def hand_back(
    *,
    check: Annotated[bool, typer.Option("--check", help="Only tell what would be lost.")] = False,
    accept_losses: Annotated[bool, typer.Option("--accept-losses", help="Do it though something is lost.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data_dir: DataDirOption = None,
    database_url: DatabaseUrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hand the database back to an admin of XXL-JOB: tell what that cannot honour, and let go of what is under way.

    It is refused, with exit code 1, while an admin of Jobwheel runs, or if jobs would run at other times, too often or
    not at all. With --check nothing is changed in any case.
    """
    # Imported when it is called: the admin's packages take most of a second.
    from jobwheel.admin.services.hand_back import check_hand_back  # noqa: PLC0415 - see above
    from jobwheel.cli import database_work as work  # noqa: PLC0415 - see above

    settings = work.settings_of(data_dir, database_url)
    report = work.hand_back_report(settings)
    if as_json:
        print_json(dataclasses.asdict(report))
    else:
        _print(report)
    check_hand_back(report, accept_losses=accept_losses)
    if check:
        tell("it can be handed back")
        return
    if not yes:
        typer.confirm("hand it back?", abort=True, err=True)
    let_go = work.hand_back(settings, accept_losses=accept_losses)
    tell(f"handed back: {let_go.pending} runs were not sent, {let_go.under_way} are left to the other admin")
    tell(f"start it in the zone {report.zone}, with the access token that `jobwheel token show` prints")


def _print(report: "HandBackReport") -> None:
    rows = [("!" if loss.is_grave else "", "the installation", loss.what, loss.effect) for loss in report.installation]
    for job in report.jobs:
        name = f"job {job.job_id} ({job.name})"
        rows += [("!" if loss.is_grave else "", name, loss.what, loss.effect) for loss in job.losses]
    print_table(_COLUMNS, rows, "nothing would be lost")
    if report.open_runs.pending:
        tell(f"{report.open_runs.pending} runs wait and would not be sent")
    if report.open_runs.under_way:
        tell(f"{report.open_runs.under_way} runs are under way and would be left to the other admin")
