"""The whole command line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import typer

from jobwheel import __version__
from jobwheel.admin.settings import setting_names
from jobwheel.cli import (
    alarms_commands,
    bulk_commands,
    clean_up_commands,
    cron_commands,
    database_commands,
    groups_commands,
    hand_back_command,
    job_alarms_command,
    job_documents_commands,
    job_edit_commands,
    jobs_commands,
    reports_commands,
    run_command,
    runs_commands,
    session_commands,
    tokens_commands,
)
from jobwheel.cli.admin_command import admin
from jobwheel.cli.demo.command import demo
from jobwheel.cli.executor_command import executor
from jobwheel.cli.output import complain
from jobwheel.kernel.errors import JobwheelError

_GROUPS: Final = {
    "jobs": "Jobs of a running admin.",
    "runs": "Runs of a running admin.",
    "reports": "What was counted of the runs.",
    "alarms": "Channels of alarms of a running admin.",
    "groups": "Groups of executors of a running admin.",
    "groups token": "Tokens that let in the executors of one group alone.",
    "tokens": "Tokens of programs that use the API of a running admin.",
    "cron": "What a cron expression means.",
    "db": "The database: its schema, and handing it back.",
    "token": "The access token of the installation.",
    "users": "The people of the installation.",
}


_EPILOGS: Final[Mapping[tuple[str, ...], str]] = {
    ("admin",): f"All settings, by their names in the file: {', '.join(setting_names())}.",
}


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"jobwheel {__version__}")
        raise typer.Exit


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code: 1 for an error, 2 for a wrong call."""
    try:
        build_app()(list(arguments), prog_name="jobwheel")
    except JobwheelError as error:
        complain(error.message)
        return 1
    except OSError as error:
        complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
        return 1
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def build_app() -> typer.Typer:
    """The commands and what they are called."""
    app = _group("A distributed job-scheduling platform.")
    app.callback()(_root)
    groups: dict[tuple[str, ...], typer.Typer] = {(): app}
    for path, command in _commands().items():
        *outer, name = path
        _add_groups(groups, tuple(outer)).command(name, epilog=_EPILOGS.get(path))(command)
    return app


def _add_groups(groups: dict[tuple[str, ...], typer.Typer], path: tuple[str, ...]) -> typer.Typer:
    """The group of a path, made with those around it if it is the first time."""
    if path not in groups:
        groups[path] = _group(_GROUPS[" ".join(path)])
        # A group of one command would lose the command's name without it.
        groups[path].callback()(_no_options)
        _add_groups(groups, path[:-1]).add_typer(groups[path], name=path[-1])
    return groups[path]


def command_paths() -> list[tuple[str, ...]]:
    """What can be called, such as `("jobs", "list")`."""
    return list(_commands())


def _commands() -> dict[tuple[str, ...], Callable[..., None]]:
    return {
        ("demo",): demo,
        ("admin",): admin,
        ("executor",): executor,
        ("login",): session_commands.login,
        ("logout",): session_commands.logout,
        ("run",): run_command.run,
        ("jobs", "list"): jobs_commands.list_jobs,
        ("jobs", "show"): job_edit_commands.show_job,
        ("jobs", "events"): job_edit_commands.job_events,
        ("jobs", "create"): job_edit_commands.create_job,
        ("jobs", "set"): job_edit_commands.set_job,
        ("jobs", "delete"): job_edit_commands.delete_job,
        ("jobs", "run"): bulk_commands.run_jobs,
        ("jobs", "start"): bulk_commands.start_jobs,
        ("jobs", "stop"): bulk_commands.stop_jobs,
        ("jobs", "backfill"): bulk_commands.backfill_job,
        ("jobs", "kill-runs"): jobs_commands.kill_job_runs,
        ("jobs", "alarms"): job_alarms_command.job_alarms,
        ("jobs", "script"): jobs_commands.job_script,
        ("jobs", "export"): job_documents_commands.export_jobs,
        ("jobs", "plan"): job_documents_commands.plan_jobs,
        ("jobs", "apply"): job_documents_commands.apply_jobs,
        ("runs", "list"): runs_commands.list_runs,
        ("runs", "show"): runs_commands.show_run,
        ("runs", "log"): runs_commands.show_log,
        ("runs", "rerun"): bulk_commands.rerun,
        ("runs", "kill"): runs_commands.kill_run,
        ("runs", "clean-up"): clean_up_commands.clean_up,
        ("reports", "daily"): reports_commands.daily,
        ("reports", "job"): reports_commands.job_statistics,
        ("alarms", "list"): alarms_commands.list_channels,
        ("alarms", "create"): alarms_commands.create_channel,
        ("alarms", "update"): alarms_commands.update_channel,
        ("alarms", "delete"): alarms_commands.delete_channel,
        ("alarms", "test"): alarms_commands.try_channel,
        ("groups", "list"): groups_commands.list_groups,
        ("groups", "drain"): groups_commands.drain,
        ("groups", "undrain"): groups_commands.undrain,
        ("groups", "probe"): groups_commands.probe,
        ("groups", "token", "list"): tokens_commands.list_group_tokens,
        ("groups", "token", "new"): tokens_commands.new_group_token,
        ("groups", "token", "rotate"): tokens_commands.rotate_group_token,
        ("groups", "token", "revoke"): tokens_commands.revoke_group_token,
        ("tokens", "list"): tokens_commands.list_tokens,
        ("tokens", "new"): tokens_commands.new_token,
        ("tokens", "revoke"): tokens_commands.revoke_token,
        ("cron", "next"): cron_commands.cron_next,
        ("cron", "explain"): cron_commands.cron_explain,
        ("db", "upgrade"): database_commands.upgrade,
        ("db", "current"): database_commands.current,
        ("db", "hand-back"): hand_back_command.hand_back,
        ("token", "show"): database_commands.show_token,
        ("users", "password"): database_commands.set_password,
    }


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A distributed job-scheduling platform."""


def _group(words: str) -> typer.Typer:
    return typer.Typer(
        help=words,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )


def _no_options() -> None:
    pass
