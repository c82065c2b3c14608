"""Commands that need neither an admin nor a database, and wrong calls."""

import io
import json
from pathlib import Path

import pytest

from jobwheel import __version__
from jobwheel.cli.app import run


@pytest.fixture(autouse=True)
def _nobody_signed_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("JOBWHEEL_URL", raising=False)


def test_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"jobwheel {__version__}\n"


def test_next_times_in_a_zone(capsys: pytest.CaptureFixture[str]) -> None:
    # The clock goes back on 25 October 2026 in Berlin.
    arguments = ["cron", "next", "0 30 2 * * ?", "--zone", "Europe/Berlin", "--from", "2026-10-24T00:00:00", "-n", "3"]
    assert run(arguments) == 0
    assert capsys.readouterr().out.split() == [
        "2026-10-24T02:30:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]


def test_next_times_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cron", "next", "0 0 0 1 1 ? 2030", "--zone", "UTC", "--from", "2029-01-01T00:00:00Z", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "expression": "0 0 0 1 1 ? 2030",
        "zone": "UTC",
        "times": ["2030-01-01T00:00:00+00:00"],
    }
    assert captured.err == ""


def test_says_when_there_is_no_further_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cron", "next", "0 0 0 1 1 ? 2030", "--zone", "UTC", "--from", "2031-01-01T00:00:00Z"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "never\n")


def test_without_a_zone_this_machines_is_meant(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert run(["cron", "next", "0 0 12 * * ?", "-n", "1"]) == 0
    assert capsys.readouterr().out.endswith("T12:00:00+09:00\n")


def test_explains_in_the_language_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cron", "explain", "0 30 2 * * ?"]) == 0
    english = capsys.readouterr().out
    assert run(["cron", "explain", "0 30 2 * * ?", "--language", "zh-CN"]) == 0
    assert capsys.readouterr().out == "每天 02:30\n"
    assert "02:30" in english
    assert english.isascii()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cron", "explain", "0 30 25 * * ?"], "hour: 25 is not in 0-23"),
        (["cron", "next", "0 30 2 * * ?", "--zone", "Mars/Base"], "time zone: 'Mars/Base' is not known"),
        (["cron", "next", "0 30 2 * * ?", "--zone", "UTC", "--from", "soon"], "time: 'soon' is not of the form"),
        (["executor", "nonsense"], "nonsense: is not of the form module:executor"),
        (["jobs", "list"], "not signed in at http://127.0.0.1:8080: run `jobwheel login"),
        (["jobs", "list", "--url", "ftp://x"], "'ftp://x' is no address of an admin"),
        (["jobs", "list", "--url", "http://user@x"], "'http://user@x' is no address of an admin"),
        (["logout"], "not signed in at http://127.0.0.1:8080"),
        (["admin", "--port", "99999"], "--port: 99999 is not in 0-65535"),
        (["admin", "--log-level", "loud"], "--log-level: 'loud' is not one of DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_an_error_is_one_line_that_names_the_thing(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert run(arguments) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("jobwheel: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["runs", "show", "seven"],
        ["runs", "show", "0"],
        ["cron", "next"],
        ["runs", "list", "--limit", "0"],
    ],
)
def test_a_wrong_call_ends_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert "Error: " in captured.err
    assert "Traceback" not in captured.err


def test_an_admin_that_is_not_there_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    monkeypatch.setattr("sys.stdin", io.StringIO("made-up-for-this-test\n"))
    assert run(["login", "--url", url, "--stdin"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"jobwheel: cannot reach the admin at {url}: ")
    assert "start it (`jobwheel admin`)" in captured.err
