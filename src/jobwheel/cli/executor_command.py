"""`jobwheel executor`."""

from pathlib import Path
from typing import Annotated

import typer


def executor(
    target: Annotated[str, typer.Argument(metavar="MODULE:EXECUTOR", help="Such as myapp.jobs:executor.")],
    reload: Annotated[
        bool, typer.Option("--reload", help="Start anew when a .py file below the current directory changes.")
    ] = False,
    stop_on_stdin_end: Annotated[bool, typer.Option("--stop-on-stdin-end", hidden=True)] = False,
) -> None:
    """Run the executor that a module holds, until it is stopped (Ctrl-C, SIGTERM).

    The module is looked for in the current directory first. JOBWHEEL_EXECUTOR_ADMIN, JOBWHEEL_EXECUTOR_ACCESS_TOKEN and
    the others of their kind give what the module leaves open.
    """
    # Imported when an executor is wanted: the other commands do without the SDK.
    from jobwheel.cli.target import run_target  # noqa: PLC0415 - see above

    code = run_target(target, Path.cwd(), reload=reload, stop_on_stdin_end=stop_on_stdin_end)
    if code:
        raise typer.Exit(code)
