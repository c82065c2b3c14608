"""`jobwheel executor`."""

from pathlib import Path
from typing import Annotated

import typer

from jobwheel.cli.target import load_executor


def executor(
    target: Annotated[str, typer.Argument(metavar="MODULE:EXECUTOR", help="Such as myapp.jobs:executor.")],
) -> None:
    """Run the executor that a module holds, until it is stopped (Ctrl-C, SIGTERM).

    The module is looked for in the current directory first. JOBWHEEL_EXECUTOR_ADMIN, JOBWHEEL_EXECUTOR_ACCESS_TOKEN and
    the others of their kind give what the module leaves open.
    """
    load_executor(target, Path.cwd()).run()
