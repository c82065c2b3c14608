"""Applications as their servers start them: in several worker processes, of which one serves as executor."""

import os
import signal
from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, Process
from tests.support.executor_peer import ExecutorPeer
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

FLASK = """
import os
from flask import Flask
from jobwheel import Executor

executor = Executor(app_name="shop", stop_deadline_s=5)
executor.register("who", lambda: str(os.getpid()))


def create_app():
    executor.start_in_background(stop_at_exit=True)
    return Flask(__name__)
"""

FASTAPI = """
import os
from fastapi import FastAPI
from jobwheel import Executor

executor = Executor(app_name="shop", stop_deadline_s=5)
executor.register("who", lambda: str(os.getpid()))
app = FastAPI(lifespan=executor.lifespan)
"""

GUNICORN = ("-m", "gunicorn", "--workers", "2", "--bind", "127.0.0.1:0", "--no-control-socket", "--pythonpath", ".")
UVICORN = ("-m", "uvicorn", "--workers", "2", "--port", "0", "--app-dir", ".")

SERVERS = {
    "gunicorn": (FLASK, (*GUNICORN, "program:create_app()")),
    "uvicorn": (FASTAPI, (*UVICORN, "program:app")),
}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, launch_python: Launch, tmp_path: Path) -> tuple[Process, int]:
    """A server with two workers, and the port that their executor is to have."""
    program, command = SERVERS[request.param]
    (tmp_path / "program.py").write_text(program)
    port = unused_port()
    return launch_python(*command, JOBWHEEL_EXECUTOR_PORT=str(port)), port


def workers(admin: RecordingAdmin) -> int:
    """How many processes have registered."""
    return len({beat.body["features"]["instance"] for beat in admin.of("registry")})


def test_one_worker_serves_and_when_it_is_killed_another_takes_over(
    server: tuple[Process, int], admin: RecordingAdmin
) -> None:
    process, port = server
    peer = ExecutorPeer(port)
    admin.wait_for(lambda: workers(admin) == 1, 30)
    first = int(admin.result_of(peer.run("who"))["handleMsg"])
    assert first != process.pid
    assert {beat.body["registryValue"] for beat in admin.of("registry")} == {f"http://127.0.0.1:{port}/"}

    os.kill(first, signal.SIGKILL)
    admin.wait_for(lambda: workers(admin) == 2, 30)
    second = int(admin.result_of(peer.run("who"))["handleMsg"])
    assert second not in {first, process.pid}

    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=30)
    assert process.returncode == 0, log
    assert "Traceback" not in log
    # All but the killed one leave the registry: a worker that hears of the stop last may have had a turn yet.
    assert len(admin.of("registryRemove")) == workers(admin) - 1
    assert [each.path for each in admin.requests if each.path.startswith("registry")][-1] == "registryRemove"
