"""The whole command line."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final

import typer

from jobwheel import __version__
from jobwheel.admin.settings import setting_names
from jobwheel.cli import (
    cron_commands,
    database_commands,
    groups_commands,
    jobs_commands,
    runs_commands,
    session_commands,
)
from jobwheel.cli.admin_command import admin
from jobwheel.cli.demo.command import demo
from jobwheel.cli.executor_command import executor
from jobwheel.cli.output import complain
from jobwheel.kernel.errors import JobwheelError

_GROUPS: Final = {
    "jobs": "Jobs of a running admin.",
    "runs": "Runs of a running admin.",
    "groups": "Groups of executors of a running admin.",
    "cron": "What a cron expression means.",
    "db": "The schema of the database.",
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
    groups: dict[str, typer.Typer] = {}
    for path, command in _commands().items():
        *outer, name = path
        parent = app
        if outer:
            if outer[0] not in groups:
                groups[outer[0]] = _group(_GROUPS[outer[0]])
                # A group of one command would lose the command's name without it.
                groups[outer[0]].callback()(_no_options)
                app.add_typer(groups[outer[0]], name=outer[0])
            parent = groups[outer[0]]
        parent.command(name, epilog=_EPILOGS.get(path))(command)
    return app


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
        ("jobs", "list"): jobs_commands.list_jobs,
        ("jobs", "run"): jobs_commands.run_job,
        ("jobs", "start"): jobs_commands.start_job,
        ("jobs", "stop"): jobs_commands.stop_job,
        ("jobs", "script"): jobs_commands.job_script,
        ("runs", "list"): runs_commands.list_runs,
        ("runs", "show"): runs_commands.show_run,
        ("runs", "log"): runs_commands.show_log,
        ("groups", "list"): groups_commands.list_groups,
        ("groups", "drain"): groups_commands.drain,
        ("groups", "undrain"): groups_commands.undrain,
        ("cron", "next"): cron_commands.cron_next,
        ("cron", "explain"): cron_commands.cron_explain,
        ("db", "upgrade"): database_commands.upgrade,
        ("db", "current"): database_commands.current,
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
