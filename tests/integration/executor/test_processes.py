"""Executors in processes of their own: killed, told to stop, and the example that people copy."""

import signal
import threading
from pathlib import Path

import pytest

from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import Launch, Process, registered
from tests.support.recording_admin import Recorded, RecordingAdmin, success, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

PROGRAM = """
import pathlib, threading
from jobwheel import Executor, JobContext

executor = Executor(app_name="demo", stop_deadline_s=10)

@executor.job("quick")
def quick(ctx: JobContext) -> str:
    return f"ran {ctx.parameter}"

@executor.job("waits")
def waits(ctx: JobContext) -> str:
    ctx.log.info("waiting")
    while not pathlib.Path(ctx.parameter).exists():
        threading.Event().wait(0.01)
    return "waited"

executor.run()
"""

EMBEDDED = """
import pathlib, sys, threading
from jobwheel import Executor, JobContext

executor = Executor(app_name="demo", stop_deadline_s=10)

@executor.job("waits")
def waits(ctx: JobContext) -> str:
    ctx.log.info("waiting")
    pathlib.Path("begun").touch()
    while not pathlib.Path(ctx.parameter).exists():
        threading.Event().wait(0.01)
    return "waited"

executor.start_in_background(stop_at_exit=True)
executor.start_in_background(stop_at_exit=True)
while not pathlib.Path("begun").exists():
    threading.Event().wait(0.01)
sys.exit(3)
"""


@pytest.fixture
def launch(launch_python: Launch, tmp_path: Path) -> Launch:
    def start(program: Path | None = None, **environment: str) -> Process:
        if program is None:
            program = tmp_path / "program.py"
            program.write_text(PROGRAM)
        return launch_python(program, **environment)

    return start


def test_a_result_survives_a_kill_between_the_handlers_end_and_the_admins_answer(
    launch: Launch, admin: RecordingAdmin
) -> None:
    asked, killed = threading.Event(), threading.Event()

    def never_in_time(recorded: Recorded) -> bytes:
        if recorded.path == "callback":
            asked.set()
            killed.wait(30)
            return encode_envelope(500, "too late")
        return success(recorded)

    admin.reply = never_in_time
    process = launch()
    peer = registered(admin)
    log_ids = {peer.run("quick", f"p{number}", jobId=number % 3) for number in range(30)}
    wait_until(lambda: set(peer.post("/runStatus", {"logIds": [*log_ids]})["data"].values()) == {"reporting"})
    assert asked.wait(8)
    process.send_signal(signal.SIGKILL)
    assert process.wait(10) == -signal.SIGKILL
    killed.set()

    admin.reply = success
    before = len(admin.results)
    launch()
    second = registered(admin, 2)
    admin.wait_for(lambda: log_ids <= {item["logId"] for item in admin.results[before:]}, 30)
    delivered = {item["logId"]: item["handleMsg"] for item in admin.results[before:]}
    assert delivered == {log_id: f"ran p{number}" for number, log_id in enumerate(sorted(log_ids))}
    wait_until(lambda: second.post("/beat", {})["code"] == 200)


def test_a_run_that_was_killed_is_not_run_by_a_resend(launch: Launch, admin: RecordingAdmin, tmp_path: Path) -> None:
    process = launch()
    peer = registered(admin)
    former = admin.of("registry")[0].body["features"]["instance"]
    request = peer.trigger("waits", str(tmp_path / "flag"))
    assert peer.post("/run", request)["code"] == 200
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    launch()
    second = registered(admin, 2)
    reply = second.post("/run", {**request, "resend": True, "instance": former})
    assert (reply["code"], reply["reason"]) == (500, "repeated")
    page = second.log(request["logId"])
    assert page["isEnd"] is True
    assert admin.results == []


def test_sigterm_finishes_the_run_reports_it_and_ends_well(
    launch: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    process = launch()
    peer = registered(admin)
    log_id = peer.run("waits", str(tmp_path / "flag"))
    wait_until(lambda: "waiting" in peer.log(log_id)["logContent"])
    process.send_signal(signal.SIGTERM)
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    assert peer.post("/run", peer.trigger("quick"))["reason"] == "stopping"
    (tmp_path / "flag").touch()
    assert process.wait(20) == 0
    assert admin.result_of(log_id)["handleMsg"] == "waited"
    assert list((tmp_path / ".jobwheel/executor/demo/spool").iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(
    launch: Launch, admin: RecordingAdmin, tmp_path: Path, number: signal.Signals
) -> None:
    process = launch()
    peer = registered(admin)
    log_id = peer.run("waits", str(tmp_path / "flag"))
    wait_until(lambda: "waiting" in peer.log(log_id)["logContent"])
    process.send_signal(number)
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    process.send_signal(number)
    _, log = process.communicate(timeout=8)
    assert process.returncode == -number
    assert "Traceback" not in log


def test_an_embedded_executor_stops_well_when_its_program_ends(
    launch: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    program = tmp_path / "application.py"
    program.write_text(EMBEDDED)
    # By its name: to look it up takes a pool of threads, which is closed soon after the program's end.
    process = launch(program, JOBWHEEL_EXECUTOR_ADMIN=f"http://localhost:{admin.port}")
    log_id = registered(admin).run("waits", str(tmp_path / "flag"))
    admin.wait_for(lambda: bool(admin.of("registryRemove")), 20)
    assert process.poll() is None
    (tmp_path / "flag").touch()
    _, log = process.communicate(timeout=20)
    assert (process.returncode, log) == (3, "")
    assert admin.result_of(log_id)["handleMsg"] == "waited"


def test_a_bad_setting_is_one_line_that_names_it(launch: Launch) -> None:
    process = launch(JOBWHEEL_EXECUTOR_QUEUE_LIMIT="lots")
    _, log = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "setting JOBWHEEL_EXECUTOR_QUEUE_LIMIT is 'lots', but must be a whole number" in log.splitlines()[-1]
