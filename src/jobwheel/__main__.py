"""`jobwheel …` and `python -m jobwheel`."""

import importlib.util
import sys

_NEEDED_BY_THE_COMMAND_LINE = ("typer", "rich", "httpx", "sqlalchemy")


def main() -> None:
    """Run the command line: the whole of it with the `[admin]` extra, else what the SDK alone can do."""
    if all(importlib.util.find_spec(name) for name in _NEEDED_BY_THE_COMMAND_LINE):
        from jobwheel.cli.app import run  # noqa: PLC0415 - a plain install does not have what it needs
    else:
        from jobwheel.cli.plain import run  # noqa: PLC0415 - as above
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
