"""What commands print: tables and JSON on standard output, errors on standard error."""

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH: Final = 240
# What a terminal would obey: everything but colours, tabs and line ends.
_COMMANDS: Final = re.compile(r"\x1b\[[0-9;]*m|(\x1b[^m]?|[\x00-\x08\x0b-\x1f\x7f-\x9f])")
# What may not be printable; JSON itself escapes what is below a blank.
_UNSHOWN: Final = re.compile(r"[^\n\x20-\x7e]")


def print_json(value: object) -> None:
    """Print one JSON document."""
    print(json_text(value))


def json_text(value: object) -> str:
    """One JSON document over several lines; what a terminal would obey, or show elsewhere, is escaped in it."""
    text = json.dumps(value, ensure_ascii=False, indent=2)
    return _UNSHOWN.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], text)


def print_text(text: str) -> None:
    """Print a text of others as it is; to a terminal without what that would obey."""
    sys.stdout.write(harmless(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print rows under their columns; `empty` says what to do when there are none."""
    # Not with the module: `jobwheel admin` prints no table, and runs for long.
    from rich.table import Table  # noqa: PLC0415 - see above
    from rich.text import Text  # noqa: PLC0415 - see above

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(value)) for value in row))
    if table.row_count:
        new_console().print(table)
    else:
        tell(empty)


def new_console() -> "Console":
    """The terminal; where output goes to a file or a program, lines are not folded at 80 columns."""
    from rich.console import Console  # noqa: PLC0415 - as for a table

    return Console() if sys.stdout.isatty() else Console(width=_PIPE_WIDTH)


def tell(message: str) -> None:
    """Say something to the person that is not the command's result; words of an admin, and of others, may be in it."""
    print("\n".join(one_line(line) for line in message.split("\n")), file=sys.stderr)


def complain(message: str) -> None:
    """Say what is wrong, in one line."""
    tell(f"jobwheel: {one_line(message)}")


def one_line(value: object) -> str:
    """A value for a cell or a line: nothing that moves the cursor."""
    text = "" if value is None else str(value)
    return "".join(character if character.isprintable() else " " for character in text)


def counted_runs(count: int) -> str:
    """How many runs these are, with the verb: `1 run is`, `7 runs are`."""
    return f"{count} run is" if count == 1 else f"{count} runs are"


def harmless(text: str) -> str:
    """A text of others for a terminal: colours stay, other control sequences go."""
    return _COMMANDS.sub(lambda match: "" if match.group(1) else match.group(), text)


def local_time(instant: str | None) -> str:
    """An instant of the API in the machine's zone, with the zone's name."""
    if instant is None:
        return ""
    return datetime.fromisoformat(instant).astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")


def seconds_between(earlier: str | None, later: str | None) -> str:
    """How long it was from one instant of the API to another, such as `0.004 s`."""
    if earlier is None or later is None:
        return ""
    span = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    return f"{span.total_seconds():.3f} s"


def page_note(page: dict[str, Any]) -> None:
    """Say that there is more, and how to get it."""
    if page["next"] is not None:
        tell(f"there are more: --after {page['next']}")
