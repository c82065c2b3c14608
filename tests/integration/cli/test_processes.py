"""Commands as processes: what only a process shows (signals, exit codes, a plain install)."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cli.conftest import COMMAND

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

_NOT_IN_THE_SDK = ("typer", "rich", "httpx", "sqlalchemy", "fastapi", "pydantic", "argon2", "jinja2", "alembic")
_PLAIN = (
    f"import sys; sys.modules.update(dict.fromkeys({_NOT_IN_THE_SDK})); "
    "sys.argv[0] = 'jobwheel'; from jobwheel.__main__ import main; main()"
)
_MODULE = "from jobwheel import Executor\nexecutor = Executor(app_name='plain', port=0)\n"


def _start(command: tuple[str, ...], folder: Path) -> subprocess.Popen[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("JOBWHEEL_")}
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(command: tuple[str, ...], folder: Path) -> tuple[int, str, str]:
    with _start(command, folder) as process:
        out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize("command", [COMMAND, (sys.executable, "-c", _PLAIN)], ids=["whole", "plain"])
def test_an_executor_of_a_module_runs_until_it_is_told_to_stop(command: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(_MODULE)
    with _start((*command, "executor", "jobs:executor"), tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "executor.listening" in line:
                break
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=20)
    assert process.returncode == 0, rest


@pytest.mark.parametrize("command", [COMMAND, (sys.executable, "-c", _PLAIN)], ids=["whole", "plain"])
def test_a_bad_target_is_one_line(command: tuple[str, ...], tmp_path: Path) -> None:
    code, out, err = _finish((*command, "executor", "absent:executor"), tmp_path)
    assert (code, out) == (1, "")
    assert err.startswith("jobwheel: absent:executor: there is no module 'absent'")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [("admin",), ("jobs", "list"), ("demo", "--for", "3")])
def test_a_plain_install_says_what_it_needs(arguments: tuple[str, ...], tmp_path: Path) -> None:
    code, out, err = _finish((sys.executable, "-c", _PLAIN, *arguments), tmp_path)
    assert (code, out) == (1, "")
    assert "pip install 'jobwheel[admin]'" in err
    assert err.count("\n") == 1


def test_a_plain_install_has_help_and_a_version(tmp_path: Path) -> None:
    assert _finish((sys.executable, "-c", _PLAIN, "--version"), tmp_path)[1].startswith("jobwheel ")
    assert "module:executor" in _finish((sys.executable, "-c", _PLAIN, "executor", "--help"), tmp_path)[1]
    code, _, err = _finish((sys.executable, "-c", _PLAIN), tmp_path)
    assert code == 2
    assert "executor" in err


def test_an_admin_on_a_port_that_is_taken_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = _finish((*COMMAND, "admin", "--port", str(port)), tmp_path)
    assert code == 1
    assert re.fullmatch(rf"jobwheel: cannot listen on 127\.0\.0\.1 port {port}: .*\n", err)
    assert not (tmp_path / ".jobwheel" / "jobwheel.db").exists()


def test_an_admin_stops_when_who_started_it_is_gone(tmp_path: Path) -> None:
    with _start((*COMMAND, "admin", "--port", "0", "--stop-on-stdin-end"), tmp_path) as process:
        assert process.stdout is not None
        assert "First start: sign in as admin" in process.stdout.readline()
        assert "listens on http://127.0.0.1:" in process.stdout.readline()
        _, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    assert "admin.stopped" in log
    assert (tmp_path / ".jobwheel").stat().st_mode & 0o777 == 0o700
