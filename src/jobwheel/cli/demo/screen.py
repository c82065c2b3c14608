"""What a demo shows: a live table in a terminal, else a line for each run."""

import sys
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jobwheel.cli.demo.feed import News, RunFeed, RunLine

_ROWS: Final = 15
# Columns with their width in characters, and whether they stand on the right; the message gets the rest.
_COLUMNS: Final = (
    ("run", 6, True),
    ("job", 23, False),
    ("planned", 8, False),
    ("late", 8, True),
    ("result", 9, False),
    ("took", 8, True),
)
_WIDE: Final = 100
_STYLES: Final = {"succeeded": "green", "failed": "red", "timed_out": "red", "lost": "red"}


class Screen(Protocol):
    """Where the demo shows its runs. A context manager: nothing is shown before, and the terminal is left as it was."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, news: News, feed: RunFeed) -> None:
        """Show what a look at the admin gave."""
        ...

    def say(self, message: str) -> None:
        """Say something beside the runs."""
        ...


def new_screen() -> Screen:
    """The screen that fits what standard output is."""
    return LiveScreen(Console()) if sys.stdout.isatty() else PlainScreen()


class PlainScreen:
    """A line for each run that has ended."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, news: News, feed: RunFeed) -> None:  # noqa: ARG002 - totals are for the live table
        """One line for each."""
        for run in news.ended:
            cells = (f"run {run.run_id}", run.job, f"planned {run.planned}", f"late {run.late or '-'}", run.result)
            self.say("  ".join((*cells, run.message)).rstrip())

    def say(self, message: str) -> None:
        """A line."""
        print(message, flush=True)


class LiveScreen:
    """The newest runs in a table that is drawn anew in its place, under a line of totals."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, news: News, feed: RunFeed) -> None:
        """Draw the table."""
        self._live.update(Group(_totals(feed), _table(news.recent[:_ROWS], self._live.console.width)), refresh=True)

    def say(self, message: str) -> None:
        """A line above the table."""
        self._live.console.print(Text(message))


def _totals(feed: RunFeed) -> Text:
    parts = [f"{count} {outcome}" for outcome, count in sorted(feed.outcomes.items(), reverse=True)]
    late = feed.lateness_p99_ms()
    if late is not None:
        parts.append(f"99 of 100 were sent within {late} ms of their time")
    return Text(", ".join(parts) or "waiting for the first run", style="bold")


def _table(runs: tuple[RunLine, ...], width: int) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    wide = width >= _WIDE
    for column, cells, right in _COLUMNS:
        if wide or column != "took":
            table.add_column(column, width=cells, justify="right" if right else "left", no_wrap=True)
    left = width - sum(column.width or 0 for column in table.columns) - 2 * len(table.columns)
    table.add_column("message", width=max(1, left), no_wrap=True, overflow="ellipsis")
    for run in runs:
        result = Text(run.result, style=_STYLES.get(run.result, ""))
        took = (run.took,) if wide else ()
        table.add_row(str(run.run_id), Text(run.job), run.planned, run.late, result, *took, Text(run.message))
    return table
