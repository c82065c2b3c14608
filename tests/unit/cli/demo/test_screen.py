import io

import pytest
from rich.console import Console

from jobwheel.cli.demo.feed import News, RunFeed, RunLine
from jobwheel.cli.demo.screen import LiveScreen, PlainScreen

LINE = RunLine(7, "Every second", "02:30:00", "3 ms", "succeeded", "12 ms", "[red]ticked[/red]")


def _feed() -> RunFeed:
    feed = RunFeed(1, {}, 0)
    feed.outcomes["succeeded"] += 1
    return feed


@pytest.mark.parametrize("width", [80, 120, 40])
def test_the_live_table_fits_the_terminal_and_shows_text_as_it_is(width: int) -> None:
    output = io.StringIO()
    with LiveScreen(Console(file=output, width=width, force_terminal=True, color_system=None)) as screen:
        screen.show(News((LINE,), (LINE,)), _feed())
        screen.say("the admin was ended by SIGKILL; starting it again")
    shown = output.getvalue()
    assert "Every second" in shown
    assert "1 succeeded" in shown
    assert "the admin was ended" in shown
    if width > 40:
        assert "[red]ticked" in shown
        assert "succeeded" in shown.splitlines()[2]


def test_without_a_terminal_each_run_that_ended_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainScreen() as screen:
        screen.show(News((LINE, LINE), (LINE,)), _feed())
    assert capsys.readouterr().out == (
        "run 7  Every second  planned 02:30:00  late 3 ms  succeeded  [red]ticked[/red]\n"
    )
