"""Runs, end to end: accepted over HTTP, run in a worker, logged, reported."""

import asyncio
import contextvars
import logging
import os
import threading
import time
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.recording_admin import RecordingAdmin, wait_until


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def test_a_run_is_accepted_run_logged_and_reported(executor: Executor, admin: RecordingAdmin) -> None:
    @executor.job("settleAccounts")
    def settle(ctx: JobContext) -> str:
        ctx.log.info("settling %s", ctx.parameter)
        return f"settled {ctx.parameter}, shard {ctx.shard_index} of {ctx.shard_total}"

    peer = started(executor)
    log_id = peer.run("settleAccounts", "day=1", broadcastIndex=2, broadcastTotal=5)

    message = "settled day=1, shard 2 of 5"
    assert admin.result_of(log_id) == {
        "logId": log_id,
        "logDateTim": DATE_MS,
        "handleCode": 200,
        "handleMsg": message,
    }
    page = peer.log(log_id)
    lines = page["logContent"].splitlines()
    assert (page["fromLineNum"], page["toLineNum"], page["isEnd"]) == (1, 3, True)
    assert "parameter: day=1" in lines[0]
    assert lines[1].endswith("[INFO] settling day=1")
    assert lines[2].endswith(f"end: code 200, message: {message}")


def test_a_failing_run_is_reported_as_failed(executor: Executor, admin: RecordingAdmin) -> None:
    @executor.job("x")
    async def fails(ctx: JobContext) -> None:
        raise LookupError(f"no {ctx.parameter}")

    peer = started(executor)
    log_id = peer.run("x", "账户 \U0001f600")
    result = admin.result_of(log_id)
    assert (result["handleCode"], result["handleMsg"]) == (500, "LookupError: no 账户 \U0001f600")
    assert "Traceback" in peer.log(log_id)["logContent"]


@pytest.mark.parametrize(("dialect", "date"), [("A", "logDateTim"), ("C", "logDateTime")])
def test_results_in_other_dialects(make_executor: MakeExecutor, admin: RecordingAdmin, dialect: str, date: str) -> None:
    executor = make_executor(dialect=dialect)
    executor.register("x", lambda: "ok")
    peer = started(executor)
    log_id = peer.run("x")
    admin.wait_for(lambda: bool(admin.of("callback")))
    recorded = admin.of("callback")[0]
    items = recorded.body["callbackList"] if dialect == "C" else recorded.body
    assert (items[0]["logId"], items[0][date]) == (log_id, DATE_MS)
    assert (recorded.headers.get("xxl-job-appname") == "demo") is (dialect == "C")


def test_ten_parallel_requests_of_one_job_make_one_worker_and_ten_results(
    executor: Executor, admin: RecordingAdmin
) -> None:
    names: set[str] = set()
    executor.register("who", lambda: names.add(threading.current_thread().name))
    peer = started(executor)
    requests = [peer.trigger("who") for _ in range(10)]
    codes = post_all_at_once(peer, requests)
    admin.wait_for_results({item["logId"] for item in requests})
    assert codes == [200] * 10
    assert len(names) == 1
    assert len(admin.results) == 10


def post_all_at_once(peer: ExecutorPeer, requests: list[dict[str, object]]) -> list[int]:
    codes: list[int] = []
    threads = [
        threading.Thread(target=lambda item=item: codes.append(peer.post("/run", item)["code"])) for item in requests
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return codes


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_fifty_parallel_runs_of_one_handler_each_keep_to_their_own(
    executor: Executor, admin: RecordingAdmin, kind: str
) -> None:
    together = threading.Barrier(50, timeout=8)

    def sync_handler(ctx: JobContext) -> str:
        together.wait()
        logging.getLogger("some.library").warning("in %s", ctx.parameter)
        return f"{ctx.log_id} {ctx.parameter} {JobContext.current().log_id}"

    async def async_handler(ctx: JobContext) -> str:
        await asyncio.to_thread(together.wait)
        return await asyncio.to_thread(sync_part, ctx)

    def sync_part(ctx: JobContext) -> str:
        logging.getLogger("some.library").warning("in %s", ctx.parameter)
        return f"{ctx.log_id} {ctx.parameter} {JobContext.current().log_id}"

    executor.register("x", sync_handler if kind == "sync" else async_handler)
    peer = started(executor)
    requests = [peer.trigger("x", f"p{number}", jobId=number) for number in range(50)]
    post_all_at_once(peer, requests)
    for request in requests:
        log_id, parameter = request["logId"], request["executorParams"]
        assert admin.result_of(log_id)["handleMsg"] == f"{log_id} {parameter} {log_id}"
        content = peer.log(log_id)["logContent"]
        assert next(line for line in content.splitlines() if "WARNING" in line).endswith(f"in {parameter}")
        assert content.count("WARNING") == 1


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_handler_that_blocks_stops_neither_beats_nor_other_jobs(
    executor: Executor, admin: RecordingAdmin, kind: str
) -> None:
    inside, go = threading.Event(), threading.Event()

    def blocks() -> None:
        inside.set()
        assert go.wait(9)

    async def blocks_its_loop() -> None:
        blocks()

    async def quick() -> None: ...

    executor.register("blocks", blocks if kind == "sync" else blocks_its_loop)
    executor.register("quick", quick)
    peer = started(executor)
    blocked = peer.run("blocks", jobId=1)
    assert inside.wait(8)
    began = time.perf_counter()
    for _ in range(20):
        assert peer.post("/beat", {})["code"] == 200
    assert time.perf_counter() - began < 2
    assert peer.post("/idleBeat", {"jobId": 1})["code"] == 500
    assert peer.post("/idleBeat", {"jobId": 2})["code"] == 200
    admin.result_of(peer.run("quick", jobId=2))
    assert peer.log(blocked)["isEnd"] is False
    go.set()
    admin.result_of(blocked)
    assert peer.log(blocked)["isEnd"] is True


def test_a_handler_that_never_yields_does_not_stop_the_beat(executor: Executor, admin: RecordingAdmin) -> None:
    done = threading.Event()

    async def spins() -> None:
        while not done.is_set():
            pass

    executor.register("spins", spins)
    peer = started(executor)
    log_id = peer.run("spins")
    for _ in range(5):
        began = time.perf_counter()
        assert peer.post("/beat", {})["code"] == 200
        assert time.perf_counter() - began < 1
    done.set()
    admin.result_of(log_id)


def test_standard_logging_inside_a_run_goes_to_its_log_and_outside_it_does_not(
    executor: Executor, admin: RecordingAdmin
) -> None:
    logger = logging.getLogger("tests.library")

    def in_thread() -> None:
        logger.warning("from a thread")

    @executor.job("x")
    def handler(ctx: JobContext) -> None:
        logger.warning("from %s", "a library")
        ctx.log.info("from ctx")
        ctx.log.debug("small")
        thread = threading.Thread(target=contextvars.copy_context().run, args=(in_thread,))
        thread.start()
        thread.join()
        unknown = threading.Thread(target=lambda: ctx.log.error("from a thread that does not know the run"))
        unknown.start()
        unknown.join()

    peer = started(executor)
    log_id = peer.run("x")
    admin.result_of(log_id)
    logger.warning("outside")
    texts = [line.split("] ", 1)[1] for line in peer.log(log_id)["logContent"].splitlines()]
    assert texts[1:-1] == [
        "from a library",
        "from ctx",
        "small",
        "from a thread",
        "from a thread that does not know the run",
    ]


def test_the_handler_on_the_root_logger_is_gone_after_the_stop(executor: Executor) -> None:
    before = logging.getLogger().handlers[:]
    executor.start_in_background()
    assert logging.getLogger().handlers != before
    executor.stop_in_background()
    assert logging.getLogger().handlers == before


def test_a_handler_that_changes_the_working_directory_moves_no_logs(
    make_executor: MakeExecutor, admin: RecordingAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    executor = make_executor(log_path="logs")
    executor.register("x", lambda: os.chdir(tmp_path / "elsewhere"))
    peer = started(executor)
    for _ in range(2):
        log_id = peer.run("x")
        admin.result_of(log_id)
    assert peer.log(log_id)["toLineNum"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "logs"}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_idle_worker_ends_and_the_job_runs_again(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor = make_executor(idle_s=0.001)
    executor.register("x", lambda: None)
    peer = started(executor)
    for _ in range(5):
        # A job of its own: another test may have left a thread to itself that is still about to end.
        log_id = peer.run("x", jobId=246)
        admin.result_of(log_id)
        wait_until(lambda: not any(thread.name == "jobwheel-job-246" for thread in threading.enumerate()))


def test_a_long_message_is_cut_and_reported(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: "中" * 100_000)
    message = admin.result_of(started(executor).run("x"))["handleMsg"]
    assert message.endswith("(cut here)")
    assert len(message.encode()) <= 60_000


def test_a_log_that_grows_is_read_on(executor: Executor, admin: RecordingAdmin) -> None:
    go = threading.Event()
    first = threading.Event()

    @executor.job("x")
    def handler(ctx: JobContext) -> None:
        ctx.log.info("first")
        first.set()
        assert go.wait(8)
        for number in range(2500):
            ctx.log.info("line %d", number)

    peer = started(executor)
    log_id = peer.run("x")
    assert first.wait(8)
    page = peer.log(log_id)
    assert (page["toLineNum"], page["isEnd"]) == (2, False)
    # Other admins keep whole seconds only.
    assert peer.log(log_id, date=DATE_MS - 999)["isEnd"] is False
    assert peer.log(log_id, 3)["toLineNum"] == 2
    go.set()
    admin.result_of(log_id)
    seen: list[str] = []
    next_line, end = 3, False
    while not end:
        page = peer.log(log_id, next_line)
        seen += page["logContent"].splitlines()
        next_line, end = page["toLineNum"] + 1, page["isEnd"]
    assert len(seen) == 2501
    assert seen[0].endswith("line 0")
    assert "end: code 200" in seen[-1]


def test_a_log_folder_that_cannot_be_written_refuses_runs(make_executor: MakeExecutor, tmp_path: Path) -> None:
    executor = make_executor()
    executor.register("x", lambda: None)
    peer = started(executor)
    request = peer.trigger("x")
    day = time.strftime("%Y-%m-%d", time.localtime(DATE_MS / 1000))
    (tmp_path / "executor" / day).touch()
    reply = peer.post("/run", request)
    assert reply["code"] == 500
    assert "cannot be made" in reply["msg"]
    (tmp_path / "executor" / day).unlink()
    assert peer.post("/run", request)["code"] == 200
