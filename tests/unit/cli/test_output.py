import pytest

from jobwheel.cli.output import counted_runs, harmless, one_line, print_table, seconds_between
from jobwheel.cli.runs_commands import message_of


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("title\x1b]0;owned\x07", "title0;owned"),
        ("up\x1b[2Aand over\r", "up2Aand over"),
        ("c1 \x9b2J", "c1 2J"),
    ],
)
def test_a_log_on_a_terminal_keeps_colours_and_nothing_else(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_cell_never_breaks_the_line() -> None:
    assert one_line("a\nb\x1b[2J") == "a b [2J"
    assert one_line(None) == ""


def test_a_table_shows_what_people_typed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "name"), [(1, "[bold]loud[/bold]"), (2, "x" * 120)], "none")
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["1", "[bold]loud[/bold]"]
    assert lines[2].split() == ["2", "x" * 120]


def test_an_empty_table_says_so_beside_the_result(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id",), [], "there are none")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "there are none\n")


def test_spans() -> None:
    assert seconds_between("2026-11-27T02:30:00.000Z", "2026-11-27T02:30:01.250Z") == "1.250 s"
    assert seconds_between(None, "2026-11-27T02:30:01.250Z") == ""


@pytest.mark.parametrize(
    ("handle", "trigger", "shown"),
    [
        ("done\nin two lines", "asked", "done"),
        (None, "first\nlast", "last"),
        (None, None, ""),
        ("x" * 100, None, "x" * 79 + "…"),
    ],
)
def test_the_message_of_a_run(handle: str | None, trigger: str | None, shown: str) -> None:
    assert message_of({"handle_message": handle, "trigger_message": trigger}) == shown


def test_one_run_is_no_runs() -> None:
    assert [counted_runs(count) for count in (0, 1, 2)] == ["0 runs are", "1 run is", "2 runs are"]
