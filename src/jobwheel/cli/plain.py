"""The command line of a plain install: it runs executors and nothing else."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from jobwheel import __version__
from jobwheel.cli.target import run_target
from jobwheel.kernel.errors import JobwheelError

_NEEDS_ADMIN = "needs the admin's packages: pip install 'jobwheel[admin]'"


def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    if arguments and arguments[0] == "executor":
        return _run_executor(arguments[1:])
    parser = _parser()
    command = parser.parse_known_args(arguments)[0].command
    if command is None:
        parser.print_help(sys.stderr)
        return 2
    print(f"jobwheel: `jobwheel {command}` {_NEEDS_ADMIN}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "jobwheel", description="Runs executors.", epilog=f"Everything else {_NEEDS_ADMIN}."
    )
    parser.add_argument("--version", action="version", version=f"jobwheel {__version__}")
    parser.add_argument("command", nargs="?", help="executor: run the executor of a module")
    return parser


def _run_executor(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("jobwheel executor", description="Run the executor that a module holds.")
    parser.add_argument("target", metavar="module:executor", help="such as myapp.jobs:executor")
    parser.add_argument(
        "--reload", action="store_true", help="start anew when a .py file below the current directory changes"
    )
    parser.add_argument("--stop-on-stdin-end", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        return run_target(given.target, Path.cwd(), reload=given.reload, stop_on_stdin_end=given.stop_on_stdin_end)
    except JobwheelError as error:
        print(f"jobwheel: {error.message}", file=sys.stderr)
        return 1
