"""Signals to an admin: the first stops it in order, also while it starts; a second one ends it at once."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.conftest import COMMAND

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

SIGNALS = (signal.SIGTERM, signal.SIGINT)


_WITH_A_NAME_SERVER_THAT_HANGS = """
import socket, sys, threading
from jobwheel.__main__ import main
from jobwheel.kernel import event_loop

look_up = socket.getaddrinfo

def hang(host, *args, **kwargs):
    if host == "database.example":
        print("asked for", host, file=sys.stderr, flush=True)
        threading.Event().wait()
    return look_up(host, *args, **kwargs)

# asyncio's own loop, which asks by the library's function; uvloop waits for its threads alike.
event_loop.loop_factory = lambda: None
socket.getaddrinfo = hang
sys.argv[0] = "jobwheel"
main()
"""


class Admin:
    """`jobwheel admin` as a process, with its log."""

    def __init__(self, folder: Path, *options: str, jobwheel: tuple[str, ...] = COMMAND) -> None:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("JOBWHEEL_")}
        command = (*jobwheel, "admin", "--port", "0", *options)
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=folder, env=environ, stdout=pipe, stderr=pipe, text=True)

    def wait_for(self, words: str) -> str:
        """The line of the log that has these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return line
        raise AssertionError(f"it ended with {self.process.wait()} and never said {words}")

    def end(self, within_s: float) -> tuple[int, str]:
        """The exit status, and the rest of the log."""
        _, log = self.process.communicate(timeout=within_s)
        return self.process.returncode, log


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """A server that lets everybody connect and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def _admin_that_waits_for(server: socket.socket, folder: Path, kind: str) -> Admin:
    url = f"{kind}://wheel:secret@127.0.0.1:{server.getsockname()[1]}/jobwheel"
    admin = Admin(folder, "--database-url", url)
    assert select.select([server], [], [], 30)[0], "it does not connect"
    return admin


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("kind", ["postgresql", "mysql"])
def test_a_start_that_waits_for_its_database_ends_at_the_first_signal(
    silent_server: socket.socket, tmp_path: Path, kind: str, number: signal.Signals
) -> None:
    admin = _admin_that_waits_for(silent_server, tmp_path, kind)
    with admin.process:
        admin.process.send_signal(number)
        status, log = admin.end(15)
    assert status == 0, log
    assert "admin.stopped" in log
    assert "Traceback" not in log


def test_a_name_server_that_hangs_holds_up_no_stop(tmp_path: Path) -> None:
    """Whose answer both the event loop and the interpreter wait for, when everything else is done."""
    program = (sys.executable, "-c", _WITH_A_NAME_SERVER_THAT_HANGS)
    admin = Admin(tmp_path, "--database-url", "postgresql://wheel@database.example/jobwheel", jobwheel=program)
    with admin.process:
        admin.wait_for("asked for database.example")
        admin.process.send_signal(signal.SIGTERM)
        try:
            status, log = admin.end(15)
        finally:
            admin.process.kill()
    assert status == 0, log
    assert "admin.stopped" in log


@pytest.mark.parametrize("number", SIGNALS)
def test_a_second_signal_ends_a_stop_that_hangs(tmp_path: Path, number: signal.Signals) -> None:
    admin = Admin(tmp_path)
    with admin.process:
        admin.wait_for("admin.started")
        writing = _child_of(admin.process.pid)
        os.kill(writing, signal.SIGSTOP)
        admin.process.send_signal(number)
        admin.wait_for("admin.stopping")
        admin.process.send_signal(number)
        # The stop itself waits ten seconds for the process that writes.
        status, log = admin.end(5)
    assert status == -number, log


def _child_of(process_id: int) -> int:
    children = Path(f"/proc/{process_id}/task/{process_id}/children").read_text()
    assert re.fullmatch(r"\d+ ?", children), "the process that writes, and no other"
    return int(children)
