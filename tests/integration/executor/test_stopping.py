"""Start and stop: nothing is lost, nothing is left behind."""

import asyncio
import contextlib
import socket
import threading
import time
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from jobwheel.executor import BindError, NotStartedError, StorageError
from jobwheel.executor.log_retention import LogCleaner
from jobwheel.executor.progress import ProgressSender
from jobwheel.executor.registration import Registration
from jobwheel.kernel.service import Service
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import RecordingAdmin, wait_until

# Waiting for deadlines is a good part of it.
pytestmark = pytest.mark.timeout(30)


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def stopping(executor: Executor) -> threading.Thread:
    thread = threading.Thread(target=executor.stop_in_background)
    thread.start()
    return thread


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_stop_finishes_what_was_accepted_and_refuses_the_rest(executor: Executor, admin: RecordingAdmin) -> None:
    inside, go = threading.Event(), threading.Event()

    def handler() -> str:
        inside.set()
        assert go.wait(8)
        return "finished"

    executor.register("x", handler)
    peer = started(executor)
    log_ids = {peer.run("x"), peer.run("x"), peer.run("x")}
    assert inside.wait(8)
    admin.wait_for_registration()
    thread = stopping(executor)
    admin.wait_for(lambda: bool(admin.of("registryRemove")))
    request = peer.trigger("x")
    wait_until(lambda: peer.post("/run", request).get("reason") == "stopping")
    assert peer.post("/beat", {})["code"] == 200
    assert peer.post("/run", peer.trigger("x", resend=True, instance=executor.instance))["reason"] == "stopping"
    go.set()
    thread.join()
    assert {result["logId"]: result["handleMsg"] for result in admin.results} == dict.fromkeys(log_ids, "finished")
    with pytest.raises(ConnectionRefusedError):
        peer.post("/beat", {})


def test_at_the_deadline_what_is_left_is_reported_as_failed(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    go = threading.Event()
    executor = make_executor(stop_deadline_s=2)

    @executor.job("x")
    def nothing_ends_it() -> None:
        while not go.is_set():
            with contextlib.suppress(BaseException):
                go.wait(9)

    peer = started(executor)
    running, queued = peer.run("x"), peer.run("x")
    wait_until(lambda: "start:" in peer.log(running)["logContent"])
    began = time.perf_counter()
    executor.stop_in_background()
    assert time.perf_counter() - began < 5
    assert admin.result_of(running)["handleCode"] == 500
    assert "under way" in admin.result_of(running)["handleMsg"]
    assert admin.result_of(queued)["handleCode"] == 500
    assert "before this run began" in admin.result_of(queued)["handleMsg"]
    go.set()
    wait_until(lambda: not any(thread.name == "jobwheel-job-7" for thread in threading.enumerate()))
    assert len(admin.results) == 2


def test_before_the_deadline_a_run_is_asked_to_end_and_may_tidy_up(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    tidied: list[int] = []
    executor = make_executor(stop_deadline_s=4)

    @executor.job("x")
    def looks(ctx: JobContext) -> None:
        if ctx.wait_cancelled(9):
            tidied.append(ctx.log_id)

    @executor.job("endless")
    def endless() -> None:
        while True:
            pass

    peer = started(executor)
    looking, looping = peer.run("x", jobId=1), peer.run("endless", jobId=2)
    wait_until(lambda: "start:" in peer.log(looping)["logContent"])
    began = time.perf_counter()
    executor.stop_in_background()
    assert 2 < time.perf_counter() - began < 7
    assert tidied == [looking]
    for log_id in (looking, looping):
        assert admin.result_of(log_id)["handleCode"] == 500
        assert "the executor stopped" in admin.result_of(log_id)["handleMsg"]
    wait_until(lambda: not any(thread.name.startswith("jobwheel-job") for thread in threading.enumerate()))
    assert len(admin.results) == 2


def test_a_stop_does_not_wait_for_what_a_forced_run_left_behind(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor, go = make_executor(stop_deadline_s=30, grace_s=0.1), threading.Event()

    @executor.job("x")
    async def handler() -> None:
        # Cancelled, it leaves a thread behind, which its loop waits for in the end.
        await asyncio.to_thread(go.wait, 60)

    peer = started(executor)
    log_id = peer.run("x")
    wait_until(lambda: "start:" in peer.log(log_id)["logContent"])
    peer.post("/kill", {"jobId": 7})
    admin.result_of(log_id)
    began = time.perf_counter()
    executor.stop_in_background()
    assert time.perf_counter() - began < 5
    go.set()
    wait_until(lambda: not any(thread.name.startswith("jobwheel-job") for thread in threading.enumerate()))


def test_nothing_is_left_behind(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    async def handler() -> None: ...

    executor = make_executor()
    executor.register("x", handler)
    executor.register("y", lambda: None)
    # The first event loop of a process opens what is never closed.
    started(executor)
    executor.stop_in_background()
    threads, files = set(threading.enumerate()), open_files()
    for _ in range(3):
        peer = started(executor)
        admin.wait_for_results({peer.run("x", jobId=1), peer.run("y", jobId=2)})
        peer.log(1001)
        executor.stop_in_background()
    left = {thread.name for thread in set(threading.enumerate()) - threads}
    assert not [name for name in left if not name.startswith("recording-admin")]
    # The recording admin may still hold a connection of its side.
    wait_until(lambda: open_files() <= files + 1)


def test_start_and_stop_may_be_repeated(executor: Executor, admin: RecordingAdmin) -> None:
    executor.stop_in_background()
    executor.start_in_background()
    instance, port = executor.instance, executor.port
    executor.start_in_background()
    assert (executor.instance, executor.port) == (instance, port)
    executor.stop_in_background()
    executor.stop_in_background()
    with pytest.raises(NotStartedError):
        _ = executor.port
    executor.start_in_background()
    assert executor.instance != instance


async def test_start_and_stop_from_async_code(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: "done")
    await executor.start()
    peer = ExecutorPeer(executor.port)
    log_id = await asyncio.to_thread(peer.run, "x")
    await asyncio.to_thread(admin.result_of, log_id)
    await executor.stop()
    assert not executor.started


def test_a_port_in_use_is_one_clear_error_and_nothing_is_left(make_executor: MakeExecutor) -> None:
    threads = set(threading.enumerate())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        executor = make_executor(port=port)
        with pytest.raises(BindError, match=f"127.0.0.1 port {port}: Address already in use"):
            executor.start_in_background()
    assert not executor.started
    assert set(threading.enumerate()) <= threads
    executor.start_in_background()
    assert executor.port == port


def test_a_host_that_is_not_here_is_named(make_executor: MakeExecutor) -> None:
    with pytest.raises(BindError, match="check `host`"):
        make_executor(host="192.0.2.1", access_token="Qx7-made-up", port=12345).start_in_background()


def test_without_a_port_the_next_free_one_is_taken(make_executor: MakeExecutor) -> None:
    first, second = make_executor(port=0), make_executor(port=-1)
    first.start_in_background()
    second.start_in_background()
    assert 9999 <= first.port < second.port < 10_999


def test_a_log_path_that_cannot_be_used_is_one_clear_error(make_executor: MakeExecutor, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="log_path"):
        make_executor(log_path=tmp_path / "file" / "x").start_in_background()


def test_a_stop_without_an_admin_does_not_wait_for_the_deadline(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(stop_deadline_s=30)
    executor.register("x", lambda: None)
    peer = started(executor)
    admin.wait_for_registration()
    admin.stop()
    peer.run("x")
    began = time.perf_counter()
    executor.stop_in_background()
    assert time.perf_counter() - began < 4


async def test_the_application_can_be_mounted_elsewhere(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(embedded_server=False, address="http://127.0.0.1:1/jobs/")
    executor.register("x", lambda: "done")

    async def call(path: str, body: bytes, root_path: str = "/jobs") -> bytes:
        sent: list[dict[str, object]] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body}

        async def send(message: dict[str, object]) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "root_path": root_path,
            "headers": [],
            "client": ("127.0.0.1", 50_000),
        }
        await executor.asgi_app(scope, receive, send)  # type: ignore[arg-type]  # wider types of messages
        return bytes(sent[1]["body"])  # type: ignore[call-overload, no-any-return]

    assert b'"reason":"stopping"' in await call("/jobs/beat", b"")
    await executor.start()
    assert b'"code":200' in await call("/jobs/beat", b"")
    assert b'"code":200' in await call("/beat", b"", root_path="")
    body = b'{"jobId":7,"logId":31,"executorHandler":"x","glueType":"BEAN","logDateTime":1795651200000}'
    assert b'"code":200' in await call("/jobs/run", body)
    result = await asyncio.to_thread(admin.result_of, 31)
    assert result["handleMsg"] == "done"
    await asyncio.to_thread(admin.wait_for_registration)
    assert admin.of("registry")[0].body["registryValue"] == "http://127.0.0.1:1/jobs/"
    await executor.stop()
    assert b'"reason":"stopping"' in await call("/jobs/beat", b"")


def test_whatever_a_part_raises_the_others_are_stopped(
    make_executor: MakeExecutor,
    admin: RecordingAdmin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    executor = make_executor()
    executor.register("x", lambda: "reported")
    peer = started(executor)
    log_id = peer.run("x")

    async def fails(service: Service) -> None:
        raise ZeroDivisionError

    for part in (Registration, ProgressSender, LogCleaner):
        monkeypatch.setattr(part, "on_stop", fails)
    executor.stop_in_background()
    assert caplog.text.count("executor.part_not_stopped") == 3
    assert admin.result_of(log_id)["handleMsg"] == "reported"
    with pytest.raises(ConnectionRefusedError):
        peer.post("/beat", {})
    assert not any((tmp_path / "executor" / "spool").iterdir())
    monkeypatch.undo()
    again = make_executor(port=peer.port)
    started(again)


def test_a_stop_with_nothing_left_complains_of_no_runs(
    make_executor: MakeExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    executor = make_executor(stop_deadline_s=0)
    executor.register("x", lambda: None)
    started(executor).run("x")
    wait_until(lambda: ExecutorPeer(executor.port).post("/idleBeat", {"jobId": 7})["code"] == 200)
    executor.stop_in_background()
    assert "executor.runs_not_finished" not in caplog.text
