"""An executor in a Django project: processes, as its users start them."""

import signal
import socket
from pathlib import Path

import pytest

from tests.integration.executor.conftest import Launch, ended_well, registered
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

SETTINGS = """
SECRET_KEY = "made-up"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["jobwheel.integrations.django", "orders"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"]
ROOT_URLCONF = "urls"
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.db"}}
USE_TZ = True
JOBWHEEL_EXECUTOR = {"app_name": "shop", "stop_deadline_s": 10}
"""
URLS = """
from django.urls import include, path

urlpatterns = [path("jobwheel/", include("jobwheel.integrations.django.urls"))]
"""
MANAGE = """
import os, sys
from django.core.management import execute_from_command_line

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
execute_from_command_line(sys.argv)
"""
JOBS = """
from asgiref.sync import sync_to_async
from django.db import connection
from jobwheel import JobContext
from jobwheel.integrations.django import job

def query() -> str:
    before = "none" if connection.connection is None else "open"
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    return before

@job("sync")
def sync_job() -> str:
    return query()

@job("async")
async def async_job(ctx: JobContext) -> str:
    return await sync_to_async(query)()

@job("fails")
def fails(ctx: JobContext) -> None:
    query()
    raise ValueError("no orders")
"""
SERVER = """
import os, sys, threading
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIServer, make_server

# Requests in threads: in the main thread, wsgiref would swallow a Ctrl-C that comes at a request's end.
class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

os.environ["DJANGO_SETTINGS_MODULE"] = "settings"
if sys.argv[1] == "wsgi":
    from django.core.wsgi import get_wsgi_application
    application = get_wsgi_application()
else:
    from django.core.asgi import get_asgi_application
    application = get_asgi_application()

from jobwheel.integrations.django import get_executor
get_executor().start_in_background(stop_at_exit=True)
if sys.argv[1] == "wsgi":
    try:
        make_server("127.0.0.1", int(sys.argv[2]), application, Server).serve_forever()
    except KeyboardInterrupt:
        pass
else:
    import uvicorn
    uvicorn.run(application, port=int(sys.argv[2]), lifespan="off", log_level="warning")
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path) -> Path:
    """A project with one application; returns its settings."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders/__init__.py").touch()
    (tmp_path / "orders/jobs.py").write_text(JOBS)
    for name, text in (("settings", SETTINGS), ("urls", URLS), ("manage", MANAGE), ("server", SERVER)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path / "settings.py"


def test_the_command_runs_the_jobs_of_the_applications(launch_python: Launch, admin: RecordingAdmin) -> None:
    process = launch_python("manage.py", "runexecutor")
    peer = registered(admin)
    assert admin.of("registry")[0].body["registryKey"] == "shop"
    log_ids = [peer.run(name, jobId=job_id) for job_id, name in enumerate(("sync", "async", "fails"))]
    results = [admin.result_of(log_id) for log_id in log_ids]
    assert [result["handleMsg"] for result in results] == ["none", "none", "ValueError: no orders"]
    ended_well(process, admin)


@pytest.mark.parametrize("name", ["sync", "async"])
def test_no_run_finds_the_connection_of_the_one_before(launch_python: Launch, admin: RecordingAdmin, name: str) -> None:
    launch_python("manage.py", "runexecutor")
    peer = registered(admin)
    log_ids = [peer.run(each) for each in (name, name, "fails", name)]
    found = [admin.result_of(log_id)["handleMsg"] for log_id in log_ids]
    assert [found[0], found[1], found[3]] == ["none", "none", "none"]


@pytest.mark.parametrize("kind", ["wsgi", "asgi"])
def test_it_is_served_on_the_projects_own_port(launch_python: Launch, admin: RecordingAdmin, kind: str) -> None:
    port = unused_port()
    process = launch_python(
        "server.py",
        kind,
        str(port),
        JOBWHEEL_EXECUTOR_EMBEDDED_SERVER="false",
        JOBWHEEL_EXECUTOR_ADDRESS=f"http://127.0.0.1:{port}/jobwheel",
        JOBWHEEL_EXECUTOR_ACCESS_TOKEN="Pn64-made-up",
    )
    peer = registered(admin)
    assert (peer.port, peer.base) == (port, "/jobwheel")
    wait_until(lambda: _listens(port))
    assert peer.post("/beat", {})["msg"] == "The access token is wrong."
    peer.token = "Pn64-made-up"
    assert peer.post("/beat", {})["code"] == 200
    log_id = peer.run("sync", "x" * 3_000_000)
    assert admin.result_of(log_id)["handleMsg"] == "none"
    assert "handler sync" in peer.log(log_id)["logContent"]
    ended_well(process, admin)


def test_the_command_starts_anew_when_the_source_changes(
    launch_python: Launch, admin: RecordingAdmin, tmp_path: Path
) -> None:
    process = launch_python("manage.py", "runexecutor", "--reload")
    registered(admin)
    (tmp_path / "orders/jobs.py").write_text(JOBS.replace("return query()", "return 'changed'"))
    assert admin.result_of(registered(admin, 2).run("sync"))["handleMsg"] == "changed"
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=20)
    assert process.returncode == 0, log
    assert "orders/jobs.py changed: starting anew" in log


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("JOBWHEEL_EXECUTOR = {'ports': 1}", "'ports' is no setting; valid ones are app_name, admin"),
        ("JOBWHEEL_EXECUTOR = {'queue_limit': 0}", "setting queue_limit is 0, but must be a whole number from 1"),
        ("JOBWHEEL_EXECUTOR = 'orders.jobs'", "JOBWHEEL_EXECUTOR must be a dictionary"),
    ],
)
def test_a_bad_setting_is_told_as_django_tells_it(
    launch_python: Launch, project: Path, line: str, message: str
) -> None:
    project.write_text(SETTINGS + line)
    process = launch_python("manage.py", "runexecutor")
    _, log = process.communicate(timeout=20)
    assert process.returncode == 1
    last = log.strip().splitlines()[-1]
    assert last.startswith("django.core.exceptions.ImproperlyConfigured: JOBWHEEL_EXECUTOR")
    assert message in last


def test_a_job_in_a_process_of_its_own_is_refused(launch_python: Launch, tmp_path: Path) -> None:
    (tmp_path / "orders/jobs.py").write_text(JOBS.replace('@job("sync")', '@job("sync", isolation="process")'))
    process = launch_python("manage.py", "runexecutor")
    _, log = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "job handler 'sync': isolation is not for jobs of Django" in log.strip().splitlines()[-1]


def test_a_start_that_fails_is_one_line(launch_python: Launch, project: Path) -> None:
    (project.parent / "file").touch()
    process = launch_python("manage.py", "runexecutor", JOBWHEEL_EXECUTOR_LOG_PATH="file")
    _, log = process.communicate(timeout=20)
    assert process.returncode == 1
    assert log.strip().splitlines()[-1].startswith("CommandError: cannot write to ")


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
