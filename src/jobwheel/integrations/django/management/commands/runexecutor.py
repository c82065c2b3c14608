"""`manage.py runexecutor`."""

import sys
from argparse import SUPPRESS, ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from jobwheel.cli.lifeline import stop_when_stdin_ends
from jobwheel.cli.reload import run_with_reload
from jobwheel.integrations.django import get_executor
from jobwheel.kernel.errors import JobwheelError


class Command(BaseCommand):
    """Runs the project's executor until it is stopped."""

    help = "Runs the project's jobs: the handlers in the modules `jobs` of the installed applications."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--reload", action="store_true", help="Start anew when a .py file below the current directory changes."
        )
        parser.add_argument("--stop-on-stdin-end", action="store_true", help=SUPPRESS)

    def handle(self, *_: Any, **options: Any) -> None:
        if options["reload"]:
            arguments = [each for each in sys.argv if each != "--reload"]
            sys.exit(run_with_reload([sys.executable, *arguments, "--stop-on-stdin-end"], Path.cwd()))
        if options["stop_on_stdin_end"]:
            stop_when_stdin_ends()
        try:
            get_executor().run()
        except JobwheelError as error:
            raise CommandError(error.message) from error
