"""The demo as a newcomer runs it, and what it must survive."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]


@dataclass(slots=True)
class RunningDemo:
    """A demo whose output can be waited for."""

    process: subprocess.Popen[str]
    data_dir: Path
    lines: list[str]

    def wait_for(self, pattern: str) -> str:
        """Read on until a line matches; return the match's first group, or all of it."""
        for line in self._output:
            self.lines.append(line)
            found = re.search(pattern, line)
            if found is not None:
                return found.group(1) if found.re.groups else found.group()
        raise AssertionError(f"no line matches {pattern}: {''.join(self.lines)}\n{self.errors}")

    def wait_for_runs(self, count: int) -> None:
        """Read on until some more runs have ended."""
        for _ in range(count):
            self.wait_for("^run ")

    def finish(self) -> dict[str, Any]:
        """Read to the end; return the verdict of the last line."""
        self.lines += list(self._output)
        self.process.wait(timeout=10)
        verdict: dict[str, Any] = json.loads(self.lines[-1])
        return verdict

    @property
    def admin_pid(self) -> int:
        """The process that holds the database."""
        return int((self.data_dir / "jobwheel.db.lock").read_text())

    @property
    def errors(self) -> str:
        return (self.data_dir.parent / "errors.txt").read_text()

    @property
    def _output(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout


class Demos:
    """Starts demos on one data directory, and ends what a test left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> RunningDemo:
        data_dir = self._folder / "data"
        command = (sys.executable, "-m", "jobwheel", "demo", "--port", "0", "--data-dir", str(data_dir), *arguments)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("JOBWHEEL_")}
        with (self._folder / "errors.txt").open("a") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, env=environ
            )
        self._started.append(process)
        return RunningDemo(process, data_dir, [])

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait(timeout=10)
            assert process.stdout is not None
            process.stdout.close()


@pytest.fixture
def demos(tmp_path: Path) -> Iterator[Demos]:
    demos = Demos(tmp_path)
    yield demos
    demos.end()


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


class Processes:
    """Processes whose end can be waited for, whoever started them. Opened while they live."""

    def __init__(self, pids: list[int]) -> None:
        self._handles = [os.pidfd_open(pid) for pid in pids]

    def wait_gone(self, within_s: float) -> None:
        deadline = time.monotonic() + within_s  # noqa: TID251 - a deadline for other processes
        for handle in self._handles:
            left_s = max(0.0, deadline - time.monotonic())  # noqa: TID251 - as above
            ended, _, _ = select.select([handle], [], [], left_s)
            os.close(handle)
            assert ended, f"a process lives on after {within_s} s"


def test_runs_for_some_seconds_and_proves_that_nothing_is_missing_or_doubled(demos: Demos) -> None:
    demo = demos.start("--for", "8")
    password = demo.wait_for(r"password (\S+) \(made just now")
    demo.wait_for(r"^run \d+ .* succeeded")
    verdict = demo.finish()
    assert demo.process.returncode == 0, verdict
    # A run each second, two in three, four and five seconds; the first instant may be a second away.
    assert verdict["planned"] >= 7 + 1 + 1 + 1
    assert verdict["missing"] == verdict["doubled"] == verdict["misfired"] == verdict["unfinished"] == 0
    assert verdict["succeeded"] + verdict["failed"] == verdict["planned"]
    assert verdict["runs"] > verdict["planned"]
    assert verdict["lateness_p99_ms"] is not None
    assert demo.errors == ""
    kept = [path for path in demo.data_dir.rglob("*") if path.is_file() and password.encode() in path.read_bytes()]
    assert kept == []
    assert demo.data_dir.stat().st_mode & 0o777 == 0o700


def test_a_second_demo_on_the_same_data_judges_only_its_own_time(demos: Demos) -> None:
    demos.start("--for", "2").finish()
    demo = demos.start("--for", "3")
    demo.wait_for("jobwheel users password admin --data-dir")
    verdict = demo.finish()
    assert demo.process.returncode == 0
    assert 2 <= verdict["planned"] <= 8
    assert not any("made just now" in line for line in demo.lines)


def test_an_admin_that_is_killed_comes_back_and_no_instant_is_missing_or_doubled(demos: Demos) -> None:
    # Time for the admin's second start, which takes several seconds where two cores have other work.
    demo = demos.start("--for", "15")
    demo.wait_for_runs(3)
    killed = demo.admin_pid
    os.kill(killed, signal.SIGKILL)
    demo.wait_for("the admin was ended by SIGKILL; starting it again")
    demo.wait_for_runs(3)
    assert demo.admin_pid != killed
    verdict = demo.finish()
    assert demo.process.returncode == 0, verdict
    assert verdict["missing"] == verdict["doubled"] == 0
    assert verdict["succeeded"] > 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_everything_within_five_seconds(demos: Demos, number: signal.Signals) -> None:
    demo = demos.start()
    demo.wait_for_runs(2)
    children = _children(demo.process.pid)
    assert len(children) == 2
    processes = Processes([demo.process.pid, *children])
    demo.process.send_signal(number)
    processes.wait_gone(within_s=5)
    assert demo.process.wait(timeout=1) == 0
    assert demo.errors == ""
    # Both said goodbye, rather than being killed.
    assert "admin.stopped" in (demo.data_dir / "demo" / "admin.log").read_text()
    assert "executor.removed" in (demo.data_dir / "demo" / "executor.log").read_text()


def test_its_processes_do_not_outlive_a_demo_that_is_killed(demos: Demos) -> None:
    demo = demos.start()
    demo.wait_for_runs(1)
    children = _children(demo.process.pid)
    assert len(children) == 2
    processes = Processes(children)
    demo.process.kill()
    processes.wait_gone(within_s=8)


def test_what_stands_in_the_way_is_told_before_anything_starts(demos: Demos) -> None:
    first = demos.start()
    first.wait_for_runs(1)
    second = demos.start()
    assert second.process.wait(timeout=20) == 1
    assert "is in use by another admin" in second.errors
    assert second.errors.count("\n") == 1
    assert first.process.poll() is None


def test_a_demo_that_is_interrupted_before_its_time_gives_no_verdict(demos: Demos) -> None:
    demo = demos.start("--for", "60")
    demo.wait_for_runs(1)
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=8) == 130
    assert "there is no verdict" in demo.errors
