import json
import sys

import pytest

from jobwheel.cli.job_file import job_file_text
from jobwheel.cli.output import (
    counted_runs,
    harmless,
    one_line,
    print_json,
    print_table,
    print_text,
    seconds_between,
    tell,
)
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


OBEYED = "\x1b]0;owned\x07\x9b2J\x7f\u202e\u2028\U000e0001"


@pytest.mark.parametrize("form", ["print", "json", "yaml"])
def test_json_and_yaml_hold_nothing_that_a_terminal_obeys(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    value = {"name": f"settled \N{GRINNING FACE}{OBEYED}"}
    if form == "print":
        print_json(value)
    else:
        sys.stdout.write(job_file_text(value, form))
    written = capsys.readouterr().out
    # To YAML a mark of direction is a character like others; no terminal does anything for it.
    assert {each for each in written if not each.isprintable()} <= ({"\n", "\u202e"} if form == "yaml" else {"\n"})
    assert "settled \N{GRINNING FACE}" in written or form == "yaml"
    if form != "yaml":
        assert json.loads(written) == value


def test_what_is_told_may_have_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    tell(f"first\nits log cannot be read: {OBEYED}")
    told = capsys.readouterr().err
    assert told.startswith("first\nits log cannot be read: ")
    assert told.replace("\n", "").isprintable()


def test_a_text_goes_to_a_file_as_it_is_and_to_a_terminal_without_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_text(f"\x1b[31mred{OBEYED}")
    assert capsys.readouterr().out == f"\x1b[31mred{OBEYED}"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_text("\x1b[31mred\x1b]0;owned\x07")
    assert capsys.readouterr().out == "\x1b[31mred0;owned"


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
