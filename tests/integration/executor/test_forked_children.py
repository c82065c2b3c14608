"""Children that a handler forks: they are no executors, and keep nothing from one."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, registered
from tests.support.http_peer import unused_port
from tests.support.orphans import LEAVE_A_CHILD
from tests.support.processes import group_members
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

FORKS_WHILE_IT_STOPS = """
import multiprocessing, pathlib, threading
from jobwheel import Executor, JobContext

executor = Executor(app_name="demo", stop_deadline_s=20)

@executor.job("forks")
def forks(ctx: JobContext) -> str:
    pathlib.Path("begun").touch()
    while not pathlib.Path("stopping").exists():
        threading.Event().wait(0.01)
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join(8)
    code = child.exitcode
    child.kill()
    return f"exit code {code}"

executor.start_in_background(stop_at_exit=True)
while not pathlib.Path("begun").exists():
    threading.Event().wait(0.01)
"""


def test_a_child_that_is_forked_while_the_executor_stops_ends(
    launch_python: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    process = launch_python("-c", FORKS_WHILE_IT_STOPS)
    log_id = registered(admin).run("forks")
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    (tmp_path / "stopping").touch()
    assert admin.result_of(log_id)["handleMsg"] == "exit code 0"
    assert process.wait(20) == 0


WORKER = """
import os, pathlib, sys, threading
from jobwheel import Executor

executor = Executor(app_name="demo")
executor.start_in_background(stop_at_exit=True)
while not pathlib.Path("first").exists():
    threading.Event().wait(0.01)
executor.stop_in_background()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
executor.start_in_background(stop_at_exit=True)
while not pathlib.Path("second").exists():
    threading.Event().wait(0.01)
"""


def test_a_child_that_starts_the_executor_itself_stops_it_at_its_end(
    launch_python: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    process = launch_python("-c", WORKER)
    for number, name in enumerate(("first", "second"), 1):
        registered(admin, number)
        (tmp_path / name).touch()
    assert process.wait(20) == 0
    assert len(admin.of("registryRemove")) == 2


FORKS = """
import multiprocessing, pathlib, threading
from jobwheel import Executor

executor = Executor(app_name="demo")

def outlive():
    pathlib.Path("begun").touch()
    while not pathlib.Path("leave").exists():
        threading.Event().wait(0.01)

@executor.job("forks")
def forks():
    multiprocessing.get_context("fork").Process(target=outlive).start()
    while not pathlib.Path("begun").exists():
        threading.Event().wait(0.01)

executor.run()
"""


def test_a_child_that_outlives_the_executor_keeps_the_port_from_nobody(
    launch_python: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    port = str(unused_port())
    process = launch_python("-c", FORKS, JOBWHEEL_EXECUTOR_PORT=port)
    try:
        admin.result_of(registered(admin).run("forks"))
        process.kill()
        process.wait(20)
        second = launch_python("-c", FORKS, JOBWHEEL_EXECUTOR_PORT=port)
        assert registered(admin, 2).post("/beat", {})["code"] == 200
        assert second.poll() is None
    finally:
        (tmp_path / "leave").touch()


DIES_AND_LEAVES_A_CHILD = f"""{LEAVE_A_CHILD}
from jobwheel.executor.child_process import ChildProcess, Command
from jobwheel.executor.handler_process import HandlerProcess
from jobwheel.kernel.clock import SystemClock

def leave(_level, group):
    print(group, flush=True)
    leave_a_child()

if sys.argv[1] == "handler":
    handler = HandlerProcess("handler")
    leave("", handler._process.pid)
ChildProcess(leave, SystemClock()).run(Command(("bash", "-c", "echo $$; sleep 600"), os.environ))
"""


@pytest.mark.parametrize("kind", ["handler", "command"])
def test_a_child_that_outlives_the_executor_keeps_nothing_else_alive(kind: str) -> None:
    command = [sys.executable, "-c", DIES_AND_LEAVES_A_CHILD, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        group = int(process.stdout.readline())
        try:
            assert process.wait(20) == -signal.SIGKILL
            # The child lives until its input ends, with the block.
            wait_until(lambda: not group_members(group))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
