import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from jobwheel import Executor
from tests.support.executor_peer import ExecutorPeer
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin

MakeExecutor = Callable[..., Executor]
Process = subprocess.Popen[str]
Launch = Callable[..., Process]


@pytest.fixture
def admin() -> Iterator[RecordingAdmin]:
    with RecordingAdmin() as recording:
        yield recording


@pytest.fixture
def make_executor(admin: RecordingAdmin, tmp_path: Path) -> Iterator[MakeExecutor]:
    """Makes executors that are stopped after the test; arguments go before what suits most tests."""
    made: list[Executor] = []

    def make(**arguments: object) -> Executor:
        usual: dict[str, object] = {
            "app_name": "demo",
            "admin": admin.url,
            "port": unused_port(),
            "log_path": tmp_path / "executor",
            "stop_deadline_s": 4,
        }
        executor = Executor(**{**usual, **arguments})  # type: ignore[arg-type]  # the test says what it means
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.stop_in_background()


@pytest.fixture
def executor(make_executor: MakeExecutor) -> Executor:
    return make_executor()


@pytest.fixture
def launch_python(tmp_path: Path, admin: RecordingAdmin) -> Iterator[Launch]:
    """Starts Python with arguments and variables; what it started is killed after the test."""
    processes: list[Process] = []

    def start(*arguments: str | Path, **environment: str) -> Process:
        usual = {"JOBWHEEL_EXECUTOR_ADMIN": admin.url, "JOBWHEEL_EXECUTOR_PORT": "0"}
        process = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, **usual, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def registered(admin: RecordingAdmin, number: int = 1) -> ExecutorPeer:
    """The executor of the `number`-th instance that registers."""

    def instances() -> list[str]:
        return list(dict.fromkeys(beat.body["features"]["instance"] for beat in admin.of("registry")))

    admin.wait_for(lambda: len(instances()) == number, 30)
    beat = next(item for item in admin.of("registry") if item.body["features"]["instance"] == instances()[-1])
    address = urlsplit(beat.body["registryValue"])
    assert address.port is not None
    return ExecutorPeer(address.port, base=address.path.rstrip("/"))


def ended_well(process: Process, admin: RecordingAdmin) -> str:
    """Stop it with Ctrl-C; it leaves the registry and complains of nothing. Returns its log."""
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    assert "Traceback" not in log
    assert len(admin.of("registryRemove")) == 1
    return log
