"""Executors that live in somebody's web application, on its port."""

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from wsgiref.types import WSGIApplication

import pytest
from fastapi import FastAPI

from jobwheel import Executor
from jobwheel.executor.errors import StorageError
from jobwheel.wire.messages import MAX_BODY_BYTES
from tests.integration.executor.conftest import MakeExecutor
from tests.support.application_server import serve_asgi, serve_wsgi
from tests.support.executor_peer import ExecutorPeer
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin, wait_until

TOKEN = "Hw83-made-up"


@pytest.fixture(params=["asgi", "wsgi"])
def mounted(request: pytest.FixtureRequest, make_executor: MakeExecutor) -> Iterator[tuple[Executor, ExecutorPeer]]:
    """A started executor whose API somebody else serves."""
    executor = make_executor(embedded_server=False, address="http://127.0.0.1:1/jobs", access_token=TOKEN)
    serve = serve_asgi(executor.asgi_app) if request.param == "asgi" else serve_wsgi(executor.wsgi_app)
    with serve as port:
        yield executor, ExecutorPeer(port, TOKEN)


def test_a_run_comes_in_by_the_applications_port(mounted: tuple[Executor, ExecutorPeer], admin: RecordingAdmin) -> None:
    executor, peer = mounted
    executor.register("greet", lambda ctx: f"hello, {ctx.parameter}")
    executor.start_in_background()
    log_id = peer.run("greet", "Zoë")
    assert admin.result_of(log_id)["handleMsg"] == "hello, Zoë"
    assert "handler greet" in peer.log(log_id)["logContent"]
    assert peer.post("/idleBeat", {"jobId": 7})["code"] == 200
    admin.wait_for_registration()
    assert admin.of("registry")[0].body["registryValue"] == "http://127.0.0.1:1/jobs"


def test_what_is_mounted_is_guarded_as_what_is_not(mounted: tuple[Executor, ExecutorPeer]) -> None:
    executor, peer = mounted
    executor.start_in_background()
    for wrong in (None, "Hw83-made", ""):
        assert ExecutorPeer(peer.port, wrong).post("/beat", {})["msg"] == "The access token is wrong."
    assert "HttpMethod" in peer.post_raw("/beat", b"", method="PUT")["msg"]
    assert "uri-mapping(/absent) not found" in peer.post("/absent", {})["msg"]
    assert peer.post_raw("//beat/", b"{}")["code"] == 200
    assert "logId" in peer.post("/run", {"logId": "x"})["msg"]
    assert peer.post_raw("/run", b"{")["code"] == 500
    assert peer.post_raw("/idleBeat", b"")["code"] == 500


def test_before_its_start_and_after_its_end_it_refuses(mounted: tuple[Executor, ExecutorPeer]) -> None:
    executor, peer = mounted
    assert peer.post("/beat", {})["reason"] == "stopping"
    executor.start_in_background()
    assert peer.post("/beat", {})["code"] == 200
    executor.stop_in_background()
    assert peer.post("/run", peer.trigger("x"))["reason"] == "stopping"


def test_many_threads_may_ask_the_wsgi_application_at_once(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(embedded_server=False, address="http://127.0.0.1:1/")
    executor.register("x", lambda: None)
    executor.start_in_background()
    with serve_wsgi(executor.wsgi_app) as port, ThreadPoolExecutor(8) as pool:
        peer = ExecutorPeer(port)
        log_ids = set(pool.map(lambda number: peer.run("x", jobId=number % 5), range(40)))
    assert len(log_ids) == 40
    admin.wait_for_results(log_ids)


class Body:
    """A stream that tells how much of it was read."""

    def __init__(self, size: int, error: OSError | None = None) -> None:
        self.left = size
        self.error = error
        self.read_bytes = 0

    def read(self, size: int) -> bytes:
        if self.error is not None:
            raise self.error
        chunk = min(size, self.left)
        self.left -= chunk
        self.read_bytes += chunk
        return b" " * chunk


def call_wsgi(application: WSGIApplication, body: Body, **environ: object) -> tuple[str, dict[str, object]]:
    """What the application answers to a server that is not as careful as those of the tests."""
    statuses: list[str] = []

    def start_response(status: str, *_: object) -> Callable[[bytes], object]:
        statuses.append(status)
        return bytes

    usual = {"REQUEST_METHOD": "POST", "PATH_INFO": "/run", "REMOTE_ADDR": "127.0.0.1", "wsgi.input": body}
    answer = b"".join(application({**usual, **environ}, start_response))
    return statuses[0], json.loads(answer)


@pytest.fixture
def application(make_executor: MakeExecutor) -> WSGIApplication:
    executor = make_executor(embedded_server=False, address="http://127.0.0.1:1/")
    executor.start_in_background()
    return executor.wsgi_app


def test_a_body_that_is_too_long_is_not_read_to_its_end(application: WSGIApplication) -> None:
    body = Body(50 * MAX_BODY_BYTES)
    status, reply = call_wsgi(application, body, CONTENT_LENGTH=str(50 * MAX_BODY_BYTES))
    assert (status, reply["code"]) == ("200 OK", 500)
    assert "the body is larger than" in str(reply["msg"])
    assert body.read_bytes < MAX_BODY_BYTES + 200_000


@pytest.mark.parametrize("length", ["", "-5", "many", "0", "\u00b2", "9" * 5000, None])
def test_without_a_length_nothing_is_read(application: WSGIApplication, length: str | None) -> None:
    body = Body(10)
    environ = {} if length is None else {"CONTENT_LENGTH": length}
    assert call_wsgi(application, body, **environ)[1]["code"] == 500
    assert body.read_bytes == 0


def test_without_a_length_a_body_is_read_whose_end_the_server_tells(application: WSGIApplication) -> None:
    body = Body(100_000)
    assert call_wsgi(application, body, **{"wsgi.input_terminated": True})[1]["code"] == 500
    assert body.read_bytes == 100_000


@pytest.mark.parametrize("body", [Body(5), Body(0, ConnectionResetError())], ids=["short", "broken"])
def test_a_client_that_goes_away_is_no_error_of_the_server(application: WSGIApplication, body: Body) -> None:
    reply = call_wsgi(application, body, CONTENT_LENGTH="9")[1]
    assert reply["msg"] == "the body ended early: the client went away"


@pytest.mark.parametrize(
    ("client", "code"),
    [
        ("127.0.0.1", 200),
        ("::1", 200),
        ("::ffff:127.0.0.1", 200),
        ("10.0.0.9", 500),
        ("::ffff:10.0.0.9", 500),
        ("", 500),
    ],
)
def test_without_a_token_only_this_machine_is_served(application: WSGIApplication, client: str, code: int) -> None:
    environ = {"PATH_INFO": "/beat", "CONTENT_LENGTH": "0", "REMOTE_ADDR": client}
    reply = call_wsgi(application, Body(0), **environ)[1]
    assert reply["code"] == code
    assert ("without an access_token" in str(reply.get("msg"))) == (code == 500)


def test_the_callers_event_loop_stays_as_it_was(application: WSGIApplication) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        call_wsgi(application, Body(0), PATH_INFO="/beat")
        assert asyncio.get_event_loop_policy().get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_lifespan_starts_and_stops_it(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: "done")
    with serve_asgi(FastAPI(lifespan=executor.lifespan)):
        log_id = ExecutorPeer(executor.port).run("x")
        admin.wait_for_registration()
    assert not executor.started
    assert admin.result_of(log_id)["handleMsg"] == "done"
    assert len(admin.of("registryRemove")) == 1


def test_a_lifespan_stands_inside_another(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    port = unused_port()
    executor = make_executor(embedded_server=False, address=f"http://127.0.0.1:{port}/jobs/")
    executor.register("x", lambda: "done")
    seen: list[str] = []

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, object]]:
        seen.append("opened")
        async with executor.lifespan(app):
            yield {"pool": "open"}
        seen.append("closed")

    application = FastAPI(lifespan=lifespan)
    application.mount("/jobs", executor.asgi_app)
    with serve_asgi(application, port):
        peer = ExecutorPeer(port)
        request = peer.trigger("x")
        assert peer.post("/jobs/run", request)["code"] == 200
        assert admin.result_of(request["logId"])["handleMsg"] == "done"
        admin.wait_for_registration()
    assert seen == ["opened", "closed"]
    assert admin.of("registryRemove")[0].body["registryValue"] == f"http://127.0.0.1:{port}/jobs/"


async def test_a_start_that_is_cancelled_is_undone(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor()

    async def live() -> None:
        async with executor.lifespan():
            await asyncio.Event().wait()

    task = asyncio.create_task(live())
    await asyncio.to_thread(wait_until, lambda: "jobwheel-executor" in {each.name for each in threading.enumerate()})
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not executor.started


async def test_a_lifespan_whose_start_fails_says_why(make_executor: MakeExecutor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    executor = make_executor(log_path=tmp_path / "file")
    with pytest.raises(StorageError):
        async with executor.lifespan():
            pytest.fail("it has not started")
    assert not executor.started
