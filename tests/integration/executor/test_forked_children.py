"""Children that a handler forks: they are no executors, and keep nothing from one."""

from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, registered
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin

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
