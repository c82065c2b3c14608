"""Several worker processes of one application: one of them serves."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobwheel.executor.server import bind
from jobwheel.executor.turn import Turn
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

PROGRAM = """
import os
from jobwheel import Executor

executor = Executor(app_name="demo", stop_deadline_s=5)
executor.register("who", lambda: str(os.getpid()))
executor.run()
"""


class Worker:
    """One process, and what it has logged so far."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=folder,
            env={**os.environ, **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.log = ""
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log += line

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


Launch = Callable[[int], list[Worker]]


@pytest.fixture
def port() -> int:
    return unused_port()


@pytest.fixture
def launch(tmp_path: Path, admin: RecordingAdmin, port: int) -> Iterator[Launch]:
    made: list[Worker] = []
    environment = {"JOBWHEEL_EXECUTOR_ADMIN": admin.url, "JOBWHEEL_EXECUTOR_PORT": str(port)}

    def start(number: int) -> list[Worker]:
        workers = [Worker(tmp_path, environment) for _ in range(number)]
        made.extend(workers)
        return workers

    yield start
    for worker in made:
        worker.end()


def addresses(admin: RecordingAdmin) -> dict[str, str]:
    """By instance, what it has registered."""
    return {beat.body["features"]["instance"]: beat.body["registryValue"] for beat in admin.of("registry")}


def split(workers: list[Worker]) -> tuple[Worker, list[Worker]]:
    """The one that serves and those that stand by, once each is one of these."""
    wait_until(lambda: all(re.search("executor.(registered|stands_by)", worker.log) for worker in workers), 30)
    waiting = [worker for worker in workers if "executor.stands_by" in worker.log]
    (serving,) = [worker for worker in workers if worker not in waiting]
    return serving, waiting


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_one_registers_and_serves_and_when_it_ends_another_takes_over(
    launch: Launch, admin: RecordingAdmin, port: int, end: signal.Signals
) -> None:
    workers = launch(3)
    serving, waiting = split(workers)
    peer = ExecutorPeer(port)
    assert admin.result_of(peer.run("who"))["handleMsg"] == str(serving.process.pid)
    assert len(addresses(admin)) == 1
    assert all(f"serving_process={serving.process.pid}" in worker.log for worker in waiting)

    serving.process.send_signal(end)
    wait_until(lambda: any("executor.registered" in worker.log for worker in waiting), 30)
    (second,) = [worker for worker in waiting if "executor.takes_over" in worker.log]
    (third,) = [worker for worker in waiting if worker is not second]
    assert admin.result_of(peer.run("who"))["handleMsg"] == str(second.process.pid)
    assert len(addresses(admin)) == 2
    assert set(addresses(admin).values()) == {f"http://127.0.0.1:{port}/"}

    third.process.send_signal(signal.SIGTERM)
    assert third.process.wait(20) == 0
    assert "executor.takes_over" not in third.log
    assert peer.post("/beat", {})["code"] == 200


@pytest.mark.parametrize("port", [0])
def test_with_the_next_free_port_each_serves(launch: Launch, admin: RecordingAdmin) -> None:
    launch(2)
    admin.wait_for(lambda: len(addresses(admin)) == 2, 30)
    assert len(set(addresses(admin).values())) == 2


def test_a_take_over_that_fails_is_tried_again(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    port: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    answers = [False, True]
    monkeypatch.setattr(Turn, "take", lambda turn: answers.pop(0))
    with bind("127.0.0.1", port):
        executor = make_executor(port=port)
        executor.start_in_background()
        assert executor.stands_by
        wait_until(lambda: "executor.cannot_take_over" in caplog.text, 20)
        assert executor.stands_by
    admin.wait_for(lambda: bool(admin.of("registry")), 20)
    wait_until(lambda: not executor.stands_by)
    assert executor.port == port
    assert list(addresses(admin)) == [executor.instance]
