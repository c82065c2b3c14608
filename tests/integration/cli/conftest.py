"""A real admin process, and the command line against it."""

import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from jobwheel import Executor
from jobwheel.cli.access import signed_in as rest_of
from jobwheel.cli.app import run
from jobwheel.cli.rest import Rest
from tests.support.recording_admin import wait_until

COMMAND = (sys.executable, "-m", "jobwheel")


@dataclass(frozen=True, slots=True)
class AdminProcess:
    """A running admin."""

    url: str
    password: str
    data_dir: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """How a command ended."""

    code: int
    out: str
    err: str


Call = Callable[..., Answer]


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdminProcess]:
    data_dir = tmp_path_factory.mktemp("admin")
    arguments = ("admin", "--port", "0", "--data-dir", str(data_dir), "--stop-on-stdin-end")
    with (data_dir / "admin.log").open("w+") as log, _start(arguments, log) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        password = _found(r"the password (\S+)", process.stdout.readline())
        url = _found(r"listens on (\S+)", process.stdout.readline())
        yield AdminProcess(url, password, data_dir)
        process.stdin.close()
        assert process.wait(timeout=10) == 0, (data_dir / "admin.log").read_text()


def _start(arguments: tuple[str, ...], log: IO[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
    )


def _found(pattern: str, line: str) -> str:
    found = re.search(pattern, line)
    assert found is not None, line
    return found.group(1)


def start_registered(executor: Executor, rest: Rest, group_id: int) -> None:
    """Start an executor; return once the admin would send it runs. The start itself does not wait for that."""
    executor.start_in_background()

    def is_live() -> bool:
        group = rest.get(f"/api/v1/groups/{group_id}")
        return any(each["address"] == executor.address for each in group["live_addresses"])

    wait_until(is_live, 30)


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    """Run a command in this process, with a configuration folder of the test's own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("JOBWHEEL_URL", raising=False)

    def command(*arguments: object, stdin: str = "") -> Answer:
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return command


@pytest.fixture
def signed_in(call: Call, admin: AdminProcess) -> Call:
    """As `call`, signed in at the admin."""
    answer = call("login", "--url", admin.url, "--stdin", stdin=f"{admin.password}\n")
    assert answer.code == 0, answer.err
    return call


@pytest.fixture
def rest(signed_in: Call) -> Iterator[Rest]:
    """The client that the commands use, signed in."""
    with rest_of(None) as rest:
        yield rest
