"""Runs that are killed, covered, discarded or timed out, over HTTP as an admin does it."""

import asyncio
import contextlib
import threading
import time

import pytest

from jobwheel import Executor, JobContext
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import RecordingAdmin, wait_until


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


class Held:
    """A handler that ends when it is let go, or when its run is to end."""

    def __init__(self) -> None:
        self.began: list[int] = []
        self.go = threading.Event()

    def __call__(self, ctx: JobContext) -> str:
        self.began.append(ctx.log_id)
        while not self.go.is_set():
            if ctx.wait_cancelled(0.01):
                return "tidied up"
        return "done"


@pytest.fixture
def held(executor: Executor) -> Held:
    handler = Held()
    executor.register("x", handler)
    return handler


def test_a_kill_by_job_ends_what_runs_and_what_waits(executor: Executor, admin: RecordingAdmin, held: Held) -> None:
    peer = started(executor)
    running, *queued = [peer.run("x") for _ in range(3)]
    other = peer.run("x", jobId=8)
    wait_until(lambda: set(held.began) == {running, other})
    reply = peer.post("/kill", {"jobId": 7})
    assert (reply["code"], reply["msg"]) == (200, "job 7: 3 ended")
    assert "ended every run of the job" in admin.result_of(running)["handleMsg"]
    for log_id in queued:
        assert "before it began" in admin.result_of(log_id)["handleMsg"]
        assert "end: code 500" in peer.log(log_id)["logContent"]
    assert {result["handleCode"] for result in admin.results} == {500}
    wait_until(lambda: peer.post("/idleBeat", {"jobId": 7})["code"] == 200)
    assert peer.post("/idleBeat", {"jobId": 8})["code"] == 500
    held.go.set()
    assert admin.result_of(other)["handleMsg"] == "done"
    assert admin.result_of(peer.run("x"))["handleMsg"] == "done"


def test_a_kill_by_run_ends_that_run_alone(executor: Executor, admin: RecordingAdmin, held: Held) -> None:
    peer = started(executor)
    first, second, third = (peer.run("x") for _ in range(3))
    wait_until(lambda: held.began == [first])
    assert peer.post("/kill", {"jobId": 7, "logId": second})["msg"] == f"run {second}: 1 ended"
    assert admin.result_of(second)["handleMsg"] == "killed before it began: an admin ended this run"
    assert peer.post("/kill", {"jobId": 7, "logId": first})["code"] == 200
    assert admin.result_of(first)["handleMsg"] == "killed: an admin ended this run"
    wait_until(lambda: held.began == [first, third])
    held.go.set()
    assert admin.result_of(third)["handleMsg"] == "done"
    assert len(admin.results) == 3


def test_a_kill_of_what_is_not_here_succeeds_and_changes_nothing(
    executor: Executor, admin: RecordingAdmin, held: Held
) -> None:
    peer = started(executor)
    over = peer.run("x")
    held.go.set()
    admin.result_of(over)
    held.go.clear()
    running = peer.run("x")
    wait_until(lambda: running in held.began)
    for query in ({"jobId": 7, "logId": over}, {"jobId": 7, "logId": 5}, {"jobId": 99}):
        reply = peer.post("/kill", query)
        assert reply["code"] == 200
        assert reply["msg"].endswith("is neither running nor queued here")
    held.go.set()
    assert admin.result_of(running)["handleMsg"] == "done"
    assert len(admin.results) == 2


def test_discard_later_refuses_while_the_job_runs(executor: Executor, admin: RecordingAdmin, held: Held) -> None:
    peer = started(executor)
    first = peer.run("x", executorBlockStrategy="DISCARD_LATER")
    request = peer.trigger("x", executorBlockStrategy="DISCARD_LATER")
    reply = peer.post("/run", request)
    assert reply["code"] == 500
    assert (reply["msg"], reply["reason"]) == ("block strategy effect\uff1aDiscard Later", "blocked")
    assert "there is no log" in peer.log(request["logId"])["logContent"]
    held.go.set()
    assert admin.result_of(first)["handleMsg"] == "done"
    assert peer.post("/run", request)["code"] == 200


def test_cover_early_ends_the_earlier_ones_and_runs_the_new_one(
    executor: Executor, admin: RecordingAdmin, held: Held
) -> None:
    peer = started(executor)
    running, queued = peer.run("x"), peer.run("x")
    wait_until(lambda: held.began == [running])
    new = peer.run("x", executorBlockStrategy="COVER_EARLY")
    for log_id in (running, queued):
        result = admin.result_of(log_id)
        assert result["handleCode"] == 500
        assert result["handleMsg"].startswith("block strategy effect\uff1aCover Early")
    wait_until(lambda: held.began == [running, new])
    held.go.set()
    assert admin.result_of(new)["handleMsg"] == "done"


def test_the_last_of_many_covering_runs_is_the_one_that_runs(
    executor: Executor, admin: RecordingAdmin, held: Held
) -> None:
    peer = started(executor)
    log_ids = [peer.run("x", executorBlockStrategy="COVER_EARLY") for _ in range(20)]
    admin.wait_for_results(set(log_ids[:-1]))
    held.go.set()
    admin.wait_for_results(set(log_ids))
    assert {result["logId"] for result in admin.results if result["handleCode"] == 200} == {log_ids[-1]}
    assert len(admin.results) == 20


def test_an_unknown_strategy_waits_its_turn_and_the_log_says_so(
    executor: Executor, admin: RecordingAdmin, held: Held
) -> None:
    peer = started(executor)
    log_id = peer.run("x", executorBlockStrategy="SOMETHING_NEW")
    held.go.set()
    admin.result_of(log_id)
    assert "SOMETHING_NEW is not known here" in peer.log(log_id)["logContent"]


def test_a_full_queue_says_so(make_executor: MakeExecutor) -> None:
    executor, handler = make_executor(queue_limit=1), Held()
    executor.register("x", handler)
    peer = started(executor)
    peer.run("x")
    wait_until(lambda: len(handler.began) == 1)
    peer.run("x")
    assert peer.post("/run", peer.trigger("x"))["reason"] == "full"
    peer.run("x", executorBlockStrategy="COVER_EARLY")
    handler.go.set()


def test_an_endless_handler_times_out_is_ended_and_disturbs_nobody(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor(grace_s=0.5)

    @executor.job("endless")
    def endless() -> None:
        while True:
            pass

    executor.register("x", lambda: "fine")
    peer = started(executor)
    began = time.perf_counter()
    log_id, behind = peer.run("endless", executorTimeout=1), peer.run("x")
    assert peer.post("/beat", {})["code"] == 200
    result = admin.result_of(log_id)
    assert time.perf_counter() - began < 5
    assert (result["handleCode"], result["handleMsg"]) == (502, "timed out after 1 s")
    assert admin.result_of(behind)["handleMsg"] == "fine"
    content = peer.log(log_id)["logContent"]
    assert "asked to end: timed out after 1 s" in content
    assert "in endless" in content


def test_what_nothing_ends_is_reported_in_time_and_its_thread_left_alone(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor, go = make_executor(grace_s=0.3, heartbeat_s=0.05), threading.Event()

    @executor.job("stubborn")
    def stubborn() -> None:
        while not go.is_set():
            with contextlib.suppress(BaseException):
                go.wait(9)

    executor.register("x", lambda: "fine")
    peer = started(executor)
    log_id, behind = peer.run("stubborn", executorTimeout=1), peer.run("x")
    began = time.perf_counter()
    assert admin.result_of(log_id)["handleCode"] == 502
    assert time.perf_counter() - began < 4
    assert admin.result_of(behind)["handleMsg"] == "fine"
    assert admin.result_of(peer.run("x"))["handleMsg"] == "fine"
    assert peer.log(log_id)["isEnd"] is True
    admin.wait_for(lambda: bool(admin.of("registry")) and admin.of("registry")[-1].body["features"]["abandoned"] == 1)
    go.set()
    admin.wait_for(lambda: admin.of("registry")[-1].body["features"]["abandoned"] == 0)
    assert len(admin.results) == 3


def test_a_sleep_in_an_async_handler_delays_no_beat_and_is_reported_in_time(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor, go = make_executor(grace_s=0.3), threading.Event()

    @executor.job("sleeps")
    async def sleeps() -> None:
        # As `time.sleep(60)`: nothing in Python runs in the thread, but the test can end it.
        go.wait(60)

    peer = started(executor)
    log_id = peer.run("sleeps")
    wait_until(lambda: peer.post("/runStatus", {"logIds": [log_id]})["data"] == {str(log_id): "running"})
    for _ in range(5):
        began = time.perf_counter()
        assert peer.post("/beat", {})["code"] == 200
        assert time.perf_counter() - began < 1
    peer.post("/kill", {"jobId": 7})
    assert "killed" in admin.result_of(log_id)["handleMsg"]
    go.set()


def test_after_a_run_that_was_forced_the_loop_is_a_new_one(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    executor, inside = make_executor(grace_s=0.1), threading.Event()

    @executor.job("x")
    async def handler(ctx: JobContext) -> str:
        await asyncio.to_thread(inside.set)
        while ctx.parameter:
            pass
        return "fine"

    peer = started(executor)
    for _ in range(5):
        inside.clear()
        endless, behind = peer.run("x", "endless"), peer.run("x")
        assert inside.wait(8)
        peer.post("/kill", {"jobId": 7, "logId": endless})
        assert "killed" in admin.result_of(endless)["handleMsg"]
        assert admin.result_of(behind)["handleMsg"] == "fine"


def test_run_status_tells_where_each_run_is(executor: Executor, admin: RecordingAdmin, held: Held) -> None:
    peer = started(executor)
    running, queued = peer.run("x"), peer.run("x")
    wait_until(lambda: held.began == [running])
    answer = peer.post("/runStatus", {"logIds": [running, queued, 4711]})
    assert answer["code"] == 200
    assert answer["data"] == {str(running): "running", str(queued): "queued", "4711": "unknown"}
    admin.wait_for_registration()
    admin.stop()
    held.go.set()
    wait_until(lambda: set(peer.post("/runStatus", {"logIds": [running, queued]})["data"].values()) == {"reporting"})
    # A new process finds them in the spool, and still reports them.
    executor.stop_in_background()
    peer = started(executor)
    assert set(peer.post("/runStatus", {"logIds": [running, queued]})["data"].values()) == {"reporting"}
    admin.start()
    admin.wait_for_results({running, queued})
    wait_until(lambda: set(peer.post("/runStatus", {"logIds": [running, queued]})["data"].values()) == {"unknown"})
    assert peer.post("/runStatus", {"logIds": []})["data"] == {}


def test_fifty_runs_that_are_killed_at_once_each_report_to_their_own(executor: Executor, admin: RecordingAdmin) -> None:
    together = threading.Barrier(51, timeout=8)

    @executor.job("waits")
    async def waits(ctx: JobContext) -> None:
        await asyncio.to_thread(together.wait)
        await asyncio.to_thread(ctx.wait_cancelled, 9)

    peer = started(executor)
    log_ids = [peer.run("waits", jobId=number) for number in range(50)]
    together.wait()
    for number in range(0, 50, 2):
        peer.post("/kill", {"jobId": number})
    for number in range(1, 50, 2):
        peer.post("/kill", {"jobId": number, "logId": log_ids[number]})
    for number, log_id in enumerate(log_ids):
        words = "every run of the job" if number % 2 == 0 else "ended this run"
        assert words in admin.result_of(log_id)["handleMsg"]
        assert f"job {number}, run {log_id}," in peer.log(log_id)["logContent"]
    assert len(admin.results) == 50
