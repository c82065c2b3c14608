"""`jobwheel demo`."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    port: Annotated[
        int | None,
        typer.Option("--port", min=0, max=65535, show_default=False, help="The admin's port [default: 8080]."),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option("--data-dir", show_default=False, help="Where everything is kept [default: ./.jobwheel]."),
    ] = None,
    seconds: Annotated[
        int | None,
        typer.Option(
            "--for",
            min=1,
            max=86_400,
            metavar="SECONDS",
            show_default=False,
            help="Stop by itself, print a verdict as a line of JSON, and end with 0 only if no planned instant is "
            "missing and none ran twice.",
        ),
    ] = None,
) -> None:
    """Run an admin, an executor and sample jobs, and watch them (Ctrl-C stops).

    Of the environment it heeds JOBWHEEL_PORT, JOBWHEEL_DATA_DIR, JOBWHEEL_ACCESS_TOKEN, JOBWHEEL_ADMIN_PASSWORD,
    JOBWHEEL_TIMEZONE, JOBWHEEL_LOG_LEVEL and JOBWHEEL_ALLOW_WEAK_TOKEN; it always listens on 127.0.0.1 and has a
    database of its own.
    """
    # Imported when it is wanted: the admin's packages take most of a second.
    from jobwheel.cli.demo.demo import run_demo  # noqa: PLC0415 - see above

    raise typer.Exit(run_demo(port, data_dir, seconds))
