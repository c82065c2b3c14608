"""`jobwheel admin`."""

import os
from collections.abc import Mapping
from typing import Annotated, Final

import typer

from jobwheel.cli.lifeline import end_within, stop_when_stdin_ends
from jobwheel.cli.options import DatabaseUrlOption, DataDirOption

_ENDS_WITHIN_S: Final = 2.0


def admin(
    host: Annotated[
        str | None, typer.Option("--host", show_default=False, help="What to listen on [default: 127.0.0.1].")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", show_default=False, help="Where to listen; 0 = any free one [default: 8080]."),
    ] = None,
    data_dir: DataDirOption = None,
    database_url: DatabaseUrlOption = None,
    log_level: Annotated[
        str | None, typer.Option("--log-level", show_default=False, help="DEBUG, INFO, WARNING, ERROR [default: INFO].")
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", show_default=False, help="text or json [default: text].")
    ] = None,
    stop_on_stdin_end: Annotated[bool, typer.Option("--stop-on-stdin-end", hidden=True)] = False,
) -> None:
    """Run an admin until it is stopped (Ctrl-C, SIGTERM).

    Each setting can also stand in the environment as JOBWHEEL_NAME, and in the TOML file that JOBWHEEL_CONFIG names;
    these options go before the environment, the environment before the file.
    """
    overrides = {
        "host": host,
        "port": port,
        "data_dir": data_dir,
        "database_url": database_url,
        "log_level": log_level,
        "log_format": log_format,
    }
    if stop_on_stdin_end:
        stop_when_stdin_ends()
    _serve(overrides)


def _serve(overrides: Mapping[str, object]) -> None:
    # Imported when an admin is wanted: everything together takes most of a second.
    import asyncio  # noqa: PLC0415 - see above

    from jobwheel.admin.server import AdminServer  # noqa: PLC0415 - see above
    from jobwheel.admin.settings import load_settings  # noqa: PLC0415 - see above
    from jobwheel.kernel.event_loop import loop_factory  # noqa: PLC0415 - see above
    from jobwheel.kernel.logging import configure  # noqa: PLC0415 - see above

    loaded = load_settings(os.environ, overrides)
    configure(loaded.settings.log_level, loaded.settings.log_format)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(AdminServer(loaded, _announce).run())
        end_within(_ENDS_WITHIN_S)


def _announce(line: str) -> None:
    print(line, flush=True)
