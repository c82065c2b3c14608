"""The examples, run as their readers run them."""

import json
import urllib.request
from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, ended_well, registered
from tests.support.executor_peer import ExecutorPeer
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

EXAMPLES = Path(__file__).parents[3] / "examples"


def greets(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    log_id = peer.run("greet", "Ada")
    assert admin.result_of(log_id)["handleMsg"] == "hello, Ada"
    assert "[INFO] greeting Ada" in peer.log(log_id)["logContent"]


def page(port: int) -> object:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=8) as reply:
        return json.load(reply)


def app_name(admin: RecordingAdmin) -> object:
    return admin.of("registry")[0].body["registryKey"]


def test_the_minimal_example(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python(EXAMPLES / "minimal.py")
    peer = registered(admin)
    assert app_name(admin) == "minimal"
    greets(peer, admin)
    log = ended_well(process, admin)
    assert f'address=http://127.0.0.1:{peer.port}/ reason="host is loopback"' in log
    assert "executor.registered" in log


def test_the_example_of_a_sharded_batch_job(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python(EXAMPLES / "sharded.py")
    peer = registered(admin)
    log_ids = [peer.run("send-invoices", broadcastIndex=index, broadcastTotal=3) for index in range(3)]
    sent = []
    for index, log_id in enumerate(log_ids):
        assert admin.result_of(log_id)["handleMsg"] == f"{33 + (index == 1)} invoices sent"
        lines = peer.log(log_id)["logContent"].splitlines()
        sent += [int(line.rpartition(" ")[2]) for line in lines if "sent invoice " in line]
    assert sorted(sent) == list(range(1, 101))
    ended_well(process, admin)


def test_the_fastapi_example(launch_python: Launch, admin: RecordingAdmin) -> None:
    port = unused_port()
    process = launch_python("-m", "uvicorn", "--app-dir", EXAMPLES, "--port", str(port), "fastapi_app:app")
    peer = registered(admin)
    assert app_name(admin) == "fastapi-example"
    greets(peer, admin)
    wait_until(lambda: _answers(port))
    assert page(port) == {"jobs": ["greet"]}
    log = ended_well(process, admin)
    # The application's own server tells of itself, the executor's does not.
    assert [log.count(words) for words in ("Started server process", "Finished server process")] == [1, 1]


def test_the_flask_example(launch_python: Launch, admin: RecordingAdmin) -> None:
    port = unused_port()
    process = launch_python(
        "-m",
        "flask",
        "--app",
        EXAMPLES / "flask_app.py",
        "run",
        "--port",
        str(port),
        JOBWHEEL_EXECUTOR_ADDRESS=f"http://127.0.0.1:{port}/jobwheel",
    )
    peer = registered(admin)
    assert app_name(admin) == "flask-example"
    wait_until(lambda: _answers(port))
    greets(peer, admin)
    assert page(port) == {"jobs": ["greet"]}
    ended_well(process, admin)


def test_the_django_example(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python(EXAMPLES / "django_project/manage.py", "runexecutor")
    peer = registered(admin)
    assert app_name(admin) == "django-example"
    log_id = peer.run("count-orders")
    assert admin.result_of(log_id)["handleMsg"] == "5 orders"
    assert "counted for 2026-11-26" in peer.log(log_id)["logContent"]
    ended_well(process, admin)


def _answers(port: int) -> bool:
    try:
        page(port)
    except OSError:
        return False
    return True


def test_the_example_of_a_job_in_a_process_of_its_own(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python(EXAMPLES / "cpu_bound.py")
    peer = registered(admin)
    assert app_name(admin) == "cpu-bound"
    log_id = peer.run("count-primes", "1000")
    assert admin.result_of(log_id)["handleMsg"] == "168 primes below 1000"
    assert "[INFO] counting the primes below 1000" in peer.log(log_id)["logContent"]
    ended_well(process, admin)


def test_the_example_of_scripts(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python(EXAMPLES / "scripts.py")
    peer = registered(admin)
    assert app_name(admin) == "scripts"
    script = 'echo "parameter $1, shard $2 of $3"\nexit 3\n'
    log_id = peer.run("", "Ada", glueType="GLUE_SHELL", glueSource=script)
    assert admin.result_of(log_id)["handleCode"] == 500
    assert "parameter Ada, shard 0 of 1" in peer.log(log_id)["logContent"]
    ended_well(process, admin)
