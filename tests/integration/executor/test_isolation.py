"""Handlers in child processes, end to end: accepted over HTTP, logged, reported, and gone with their executor."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobwheel import Executor
from tests.integration.executor.conftest import MakeExecutor
from tests.support import process_handlers as handlers
from tests.support.executor_peer import ExecutorPeer
from tests.support.process_table import children_of, is_alive
from tests.support.recording_admin import RecordingAdmin, wait_until

# Each child is an interpreter that has to start.
pytestmark = pytest.mark.timeout(30)
ROOT = Path(__file__).parents[3]


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def test_a_run_is_logged_and_reported(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("talks", handlers.talks, isolation="process")
    peer = started(executor)
    log_id = peer.run("talks")
    assert admin.result_of(log_id)["handleMsg"] == "done"
    page = peer.log(log_id)
    assert page["isEnd"] is True
    lines = page["logContent"].splitlines()
    assert lines[1].endswith("[INFO] first")
    assert lines[-1].endswith("end: code 200, message: done")


def test_each_job_has_a_child_that_is_kept_and_they_run_side_by_side(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("who", handlers.process_id, isolation="process")
    peer = started(executor)
    log_ids = {job_id: [peer.run("who", jobId=job_id) for _ in range(5)] for job_id in (1, 2, 3)}
    processes = {
        job_id: {admin.result_of(log_id)["handleMsg"] for log_id in of_job} for job_id, of_job in log_ids.items()
    }
    assert all(len(each) == 1 for each in processes.values())
    assert len(set.union(*processes.values())) == 3


def test_several_executors_in_one_process_have_children_of_their_own(
    make_executor: MakeExecutor, admin: RecordingAdmin, tmp_path: Path
) -> None:
    processes = set()
    for number in range(3):
        executor = make_executor(log_path=tmp_path / str(number))
        executor.register("who", handlers.process_id, isolation="process")
        peer = started(executor)
        # Their runs may not have the same ids, since they report to one admin.
        processes.add(admin.result_of(peer.run("who", logId=5000 + number))["handleMsg"])
    assert len(processes) == 3
    assert str(os.getpid()) not in processes


def test_a_child_goes_with_its_idle_worker_and_with_its_executor(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(idle_s=0.01)
    executor.register("who", handlers.process_id, isolation="process")
    peer = started(executor)
    process_id = int(admin.result_of(peer.run("who"))["handleMsg"])
    wait_until(lambda: not is_alive(process_id))
    executor.stop_in_background()
    executor = make_executor()
    executor.register("who", handlers.process_id, isolation="process")
    process_id = int(admin.result_of(started(executor).run("who", logId=6000))["handleMsg"])
    assert is_alive(process_id)
    executor.stop_in_background()
    assert not is_alive(process_id)


def test_a_handler_that_dies_fails_its_run_and_not_the_executor(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("ends", handlers.ends, isolation="process")
    executor.register("who", handlers.process_id, isolation="process")
    peer = started(executor)
    result = admin.result_of(peer.run("ends", "segfault"))
    assert result["handleCode"] == 500
    assert "signal SIGSEGV (11)" in result["handleMsg"]
    assert admin.result_of(peer.run("who"))["handleCode"] == 200


def test_an_endless_handler_is_ended_at_its_time_out(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(grace_s=0.5)
    executor.register("endless", handlers.endless, isolation="process")
    executor.register("who", handlers.process_id, isolation="process")
    peer = started(executor)
    # The child is there before: its start is a part of the second that a run has, and may take longer than that.
    assert admin.result_of(peer.run("endless", "only begin"))["handleCode"] == 200
    log_id = peer.run("endless", executorTimeout=1)
    process_id = processes_in(peer, log_id)[0]
    assert peer.post("/beat", {})["code"] == 200
    result = admin.result_of(log_id)
    assert (result["handleCode"], result["handleMsg"]) == (502, "timed out after 1 s")
    assert not is_alive(process_id)
    assert "ended by force" in peer.log(log_id)["logContent"]
    assert admin.result_of(peer.run("who"))["handleCode"] == 200
    assert "thread is left to itself" not in peer.log(log_id)["logContent"]


def test_a_kill_is_seen_by_a_handler_that_looks(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("waits", handlers.waits_for_stop, isolation="process")
    executor.register("who", handlers.process_id, isolation="process")
    peer = started(executor)
    log_id = peer.run("waits")
    wait_until(lambda: "waiting" in peer.log(log_id)["logContent"])
    assert peer.post("/kill", {"jobId": 7, "logId": log_id})["code"] == 200
    assert admin.result_of(log_id)["handleMsg"] == "killed: an admin ended this run"
    assert "the handler ended with code 200, message: stopped: True" in peer.log(log_id)["logContent"]


def processes_in(peer: ExecutorPeer, log_id: int) -> list[int]:
    """What the run says of its processes, once it has."""

    def line() -> str:
        return next((each for each in peer.log(log_id)["logContent"].splitlines() if "process" in each), "")

    wait_until(lambda: bool(line()))
    return [int(word) for word in line().split() if word.isdigit()]


PROGRAM = """
import sys
from jobwheel import Executor, JobContext
from tests.support import process_handlers as handlers

executor = Executor(app_name="demo", stop_deadline_s=5)
executor.register("family", handlers.family, isolation="process")
executor.register("stuck", handlers.without_a_turn, isolation="process")


class Greeter:
    greeting = "hello"

    def init(self) -> None:
        self.greeting = "hello again"

    def execute(self, ctx: JobContext) -> str:
        return f"{self.greeting} {ctx.parameter}, {__name__}"


@executor.job("greet", isolation="process")
def greet(ctx: JobContext) -> str:
    return f"hello {ctx.parameter}, {sys.argv[1:]}"

executor.register("greeter", Greeter(), isolation="process")
"""
GUARDED = PROGRAM + '\nif __name__ == "__main__":\n    executor.run()\n'
UNGUARDED = PROGRAM + "\nexecutor.run()\n"

Launch = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def launch(tmp_path: Path, admin: RecordingAdmin) -> Iterator[Launch]:
    processes: list[subprocess.Popen[str]] = []

    def start(program: str) -> "subprocess.Popen[str]":
        (tmp_path / "program.py").write_text(program)
        usual = {"JOBWHEEL_EXECUTOR_ADMIN": admin.url, "JOBWHEEL_EXECUTOR_PORT": "0", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, str(tmp_path / "program.py"), "argument"]
        process = subprocess.Popen(
            command, cwd=tmp_path, env={**os.environ, **usual}, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def registered(admin: RecordingAdmin) -> ExecutorPeer:
    admin.wait_for(lambda: bool(admin.of("registry")), 30)
    address = admin.of("registry")[0].body["registryValue"]
    return ExecutorPeer(int(address.rstrip("/").rsplit(":", 1)[1]))


@pytest.mark.process
@pytest.mark.timeout(60)
@pytest.mark.parametrize("handler", ["family", "stuck"])
def test_a_killed_executor_leaves_no_child(launch: Launch, admin: RecordingAdmin, handler: str) -> None:
    process = launch(GUARDED)
    peer = registered(admin)
    processes = processes_in(peer, peer.run(handler))
    assert len(processes) == 2
    assert all(is_alive(each) for each in processes)
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(is_alive(each) for each in processes))


@pytest.mark.process
@pytest.mark.timeout(60)
def test_handlers_of_the_program_itself(launch: Launch, admin: RecordingAdmin) -> None:
    process = launch(GUARDED)
    peer = registered(admin)
    assert admin.result_of(peer.run("greet", "Ada", jobId=1))["handleMsg"] == "hello Ada, ['argument']"
    assert admin.result_of(peer.run("greeter", "Ada", jobId=2))["handleMsg"] == "hello again Ada, __mp_main__"
    children = children_of(process.pid)
    assert len(children) == 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0
    assert not any(is_alive(each) for each in children)


@pytest.mark.process
@pytest.mark.timeout(60)
def test_a_program_that_starts_when_it_is_imported_is_told_so(launch: Launch, admin: RecordingAdmin) -> None:
    launch(UNGUARDED)
    peer = registered(admin)
    for log_id in (peer.run("greet"), peer.run("greet")):
        result = admin.result_of(log_id)
        assert result["handleCode"] == 500
        assert 'put the start behind `if __name__ == "__main__":`' in result["handleMsg"]
        assert "program.py" in peer.log(log_id)["logContent"]
    # What is not of the program itself needs none of it.
    log_id = peer.run("family", jobId=2)
    assert len(processes_in(peer, log_id)) == 2
