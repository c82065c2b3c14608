"""`jobwheel executor --reload`: real processes whose source changes."""

import signal
import socket
from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, Process, registered
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

MODULE = """
import pathlib, threading
from jobwheel import Executor, JobContext

executor = Executor(app_name="demo", stop_deadline_s=20)

@executor.job("version")
def version() -> str:
    return "{version}"

@executor.job("waits")
def waits(ctx: JobContext) -> str:
    ctx.log.info("waiting")
    while not pathlib.Path(ctx.parameter).exists():
        threading.Event().wait(0.01)
    return "waited in {version}"
"""
# As if the admin's packages were not installed.
PLAIN = (
    "import sys; sys.modules.update(dict.fromkeys(('typer', 'rich', 'httpx', 'sqlalchemy'))); "
    "from jobwheel.__main__ import main; main()"
)


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "jobs.py"
    path.write_text(MODULE.format(version="one"))
    return path


@pytest.fixture(params=["whole", "plain"])
def process(request: pytest.FixtureRequest, launch_python: Launch, module: Path) -> Process:
    command = ("-m", "jobwheel") if request.param == "whole" else ("-c", PLAIN)
    return launch_python(*command, "executor", "--reload", "jobs:executor")


def test_a_change_starts_it_anew_once_its_runs_are_over(
    process: Process, module: Path, admin: RecordingAdmin, tmp_path: Path
) -> None:
    peer = registered(admin)
    log_id = peer.run("waits", str(tmp_path / "flag"))
    module.write_text(MODULE.format(version="two"))
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    (tmp_path / "flag").touch()
    assert admin.result_of(log_id)["handleMsg"] == "waited in one"
    peer = registered(admin, 2)
    assert admin.result_of(peer.run("version", logId=2001))["handleMsg"] == "two"
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    assert "jobwheel: jobs.py changed: starting anew\n" in log
    assert "Traceback" not in log
    assert len(admin.of("registryRemove")) == 2


def test_a_module_that_does_not_load_is_tried_again_with_the_next_change(
    launch_python: Launch, module: Path, admin: RecordingAdmin
) -> None:
    module.write_text("executor = \n")
    process = launch_python("-m", "jobwheel", "executor", "--reload", "jobs:executor")
    assert process.stderr is not None
    assert "the module jobs cannot be imported: SyntaxError" in process.stderr.readline()
    assert "the program ended (exit code 1); it is started again with the next change" in process.stderr.readline()
    module.write_text(MODULE.format(version="mended"))
    assert admin.result_of(registered(admin).run("version"))["handleMsg"] == "mended"
    process.terminate()
    assert process.wait(20) == 0


def test_a_second_signal_ends_it_at_once(process: Process, admin: RecordingAdmin, tmp_path: Path) -> None:
    peer = registered(admin)
    peer.run("waits", str(tmp_path / "flag"))
    process.send_signal(signal.SIGINT)
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 128 + signal.SIGTERM


def test_a_signal_while_it_waits_for_runs_ends_it_as_well(
    process: Process, module: Path, admin: RecordingAdmin, tmp_path: Path
) -> None:
    peer = registered(admin)
    log_id = peer.run("waits", str(tmp_path / "flag"))
    module.write_text(MODULE.format(version="two"))
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    process.send_signal(signal.SIGINT)
    (tmp_path / "flag").touch()
    assert process.wait(20) == 0
    assert admin.result_of(log_id)["handleMsg"] == "waited in one"


def test_the_executor_stops_when_who_watches_it_is_gone(process: Process, admin: RecordingAdmin) -> None:
    peer = registered(admin)
    process.kill()
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    wait_until(lambda: not _answers(peer.port), 20)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
