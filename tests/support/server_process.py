"""The process of a throw-away database server: started, stopped, started again, and never left behind."""

import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_START_S: Final = 60
_STOP_S: Final = 15
# Ends the server when this process has ended, however it ended: the pipe's other end is ours alone.
_GUARD: Final = """
import os, signal, sys
os.setsid()
sys.stdin.buffer.read()
try:
    os.kill(int(sys.argv[1]), signal.SIGKILL)
except ProcessLookupError:
    pass
import shutil
shutil.rmtree(sys.argv[2], ignore_errors=True)
"""


@dataclass
class ServerProcess:
    """Runs `command` as `user`, its log in `folder`; `stop_signal` ends it gracefully.

    `answers` says whether it accepts connections.
    """

    command: list[str]
    user: str
    folder: Path
    stop_signal: signal.Signals
    answers: Callable[[], bool]
    _process: "subprocess.Popen[bytes] | None" = None
    _guard: "subprocess.Popen[bytes] | None" = None

    @property
    def process_id(self) -> int:
        """Of the server, which runs."""
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def start(self) -> None:
        """Start it, for the first time or again; return when it accepts connections.

        Raises:
            RuntimeError: it ended, or does not within a minute.
        """
        log = self.folder / "log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd="/",
                **_demoted(self.user),  # type: ignore[call-overload]
            )
        guard = [sys.executable, "-c", _GUARD, str(self._process.pid), str(self.folder)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE)
        deadline_s = time.perf_counter() + _START_S
        while not self.answers():
            if self._process.poll() is not None or time.perf_counter() > deadline_s:
                raise RuntimeError(f"{self.command[0]} does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it gracefully, and if it takes too long at once; its data stays."""
        if self._process is not None:
            self._process.send_signal(self.stop_signal)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        self._process = self._guard = None


def run_as(user: str, command: list[str]) -> None:
    """Run a command to its end.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/", **_demoted(user))  # type: ignore[call-overload]
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {done.stdout[-3000:]}{done.stderr[-3000:]}")


def _demoted(user: str) -> dict[str, str | int | list[int]]:
    """Both servers refuse to run as root."""
    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam(user)
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
