"""The whole command line."""

from collections.abc import Sequence
from typing import Annotated

import typer

from jobwheel import __version__
from jobwheel.cli import cron_commands, database_commands, jobs_commands, runs_commands, session_commands
from jobwheel.cli.admin_command import admin
from jobwheel.cli.demo.command import demo
from jobwheel.cli.executor_command import executor
from jobwheel.cli.output import complain
from jobwheel.kernel.errors import JobwheelError


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
    app.callback(invoke_without_command=False)(_root)
    for name, command in (("admin", admin), ("executor", executor), ("demo", demo)):
        app.command(name)(command)
    app.command("login")(session_commands.login)
    app.command("logout")(session_commands.logout)
    for name, group in (
        ("jobs", _jobs()),
        ("runs", _runs()),
        ("cron", _cron()),
        ("db", _database()),
        ("token", _token()),
        ("users", _users()),
    ):
        app.add_typer(group, name=name)
    return app


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


def _jobs() -> typer.Typer:
    group = _group("Jobs of a running admin.")
    group.command("list")(jobs_commands.list_jobs)
    group.command("run")(jobs_commands.run_job)
    group.command("start")(jobs_commands.start_job)
    group.command("stop")(jobs_commands.stop_job)
    return group


def _runs() -> typer.Typer:
    group = _group("Runs of a running admin.")
    group.command("list")(runs_commands.list_runs)
    group.command("log")(runs_commands.show_log)
    return group


def _cron() -> typer.Typer:
    group = _group("What a cron expression means.")
    group.command("next")(cron_commands.cron_next)
    group.command("explain")(cron_commands.cron_explain)
    return group


def _database() -> typer.Typer:
    group = _group("The schema of the database.")
    group.command("upgrade")(database_commands.upgrade)
    group.command("current")(database_commands.current)
    return group


def _token() -> typer.Typer:
    group = _group("The access token of the installation.")
    group.callback()(_no_options)
    group.command("show")(database_commands.show_token)
    return group


def _users() -> typer.Typer:
    group = _group("The people of the installation.")
    group.callback()(_no_options)
    group.command("password")(database_commands.set_password)
    return group


def _no_options() -> None:
    # A group of one command would otherwise lose the command's name.
    pass
