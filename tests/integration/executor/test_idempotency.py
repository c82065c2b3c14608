"""A run that is sent again is never run again."""

import threading

import pytest

from jobwheel import Executor
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.recording_admin import RecordingAdmin, wait_until


class Held:
    """A handler that runs until it is let go, and counts."""

    def __init__(self) -> None:
        self.runs = 0
        self.go = threading.Event()

    def __call__(self) -> None:
        self.runs += 1
        assert self.go.wait(8)


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


@pytest.mark.parametrize("resend", [False, True])
def test_a_repeat_is_refused_while_queued_while_running_and_afterwards(
    executor: Executor, admin: RecordingAdmin, resend: bool
) -> None:
    held = Held()
    executor.register("x", held)
    peer = started(executor)
    running, queued = peer.trigger("x"), peer.trigger("x")
    again = {"resend": True, "instance": executor.instance} if resend else {}
    for request in (running, queued):
        assert peer.post("/run", request)["code"] == 200
    wait_until(lambda: held.runs == 1)
    for request in (running, queued):
        reply = peer.post("/run", {**request, **again})
        assert (reply["code"], reply["reason"]) == (500, "repeated")
    held.go.set()
    admin.wait_for_results({running["logId"], queued["logId"]})
    for request in (running, queued):
        assert peer.post("/trigger", {**request, **again})["reason"] == "repeated"
    executor.stop_in_background()
    assert held.runs == 2
    assert len(admin.results) == 2


def test_a_repeat_is_refused_while_the_result_waits_for_an_admin(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    executor = make_executor()
    executor.register("x", lambda: None)
    peer = started(executor)
    admin.stop()
    request = peer.trigger("x")
    assert peer.post("/run", request)["code"] == 200
    wait_until(lambda: peer.post("/idleBeat", {"jobId": 7})["code"] == 200)
    assert peer.post("/run", request)["reason"] == "repeated"


def test_many_requests_for_one_run_at_once_run_it_once(executor: Executor, admin: RecordingAdmin) -> None:
    runs: list[int] = []
    executor.register("x", lambda: runs.append(1))
    peer = started(executor)
    request = peer.trigger("x")
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(peer.post("/run", request)["code"])) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    admin.result_of(request["logId"])
    executor.stop_in_background()
    assert sorted(codes) == [200] + [500] * 19
    assert runs == [1]


def test_the_same_id_of_another_time_is_another_run(executor: Executor, admin: RecordingAdmin) -> None:
    runs: list[int] = []
    executor.register("x", lambda: runs.append(1))
    peer = started(executor)
    request = peer.trigger("x")
    assert peer.post("/run", request)["code"] == 200
    assert peer.post("/run", {**request, "logDateTime": DATE_MS + 1000})["code"] == 200
    admin.wait_for(lambda: len(admin.results) == 2)
    assert runs == [1, 1]


def test_a_resend_to_a_later_process_is_known_by_the_log_file(executor: Executor) -> None:
    runs: list[int] = []
    executor.register("x", lambda: runs.append(1))
    peer = started(executor)
    former = executor.instance
    request = peer.trigger("x")
    assert peer.post("/run", request)["code"] == 200
    executor.stop_in_background()
    peer = started(executor)
    assert executor.instance != former
    for instance in (former, executor.instance):
        reply = peer.post("/run", {**request, "resend": True, "instance": instance})
        assert reply["reason"] == "repeated"
    assert runs == [1]


@pytest.mark.parametrize("instance", ["4711-another", None])
def test_a_resend_that_never_arrived_at_another_process_runs_nothing_here(
    executor: Executor, instance: str | None
) -> None:
    runs: list[int] = []
    executor.register("x", lambda: runs.append(1))
    peer = started(executor)
    request = peer.trigger("x", resend=True)
    reply = peer.post("/run", request if instance is None else {**request, "instance": instance})
    assert (reply["code"], reply["reason"], reply["instance"]) == (500, "instance", executor.instance)
    executor.stop_in_background()
    assert runs == []


def test_a_resend_that_never_arrived_is_run(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: "ran")
    peer = started(executor)
    log_id = peer.run("x", resend=True, instance=executor.instance)
    assert admin.result_of(log_id)["handleMsg"] == "ran"


def test_a_full_queue_is_refused_and_the_run_may_come_again(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    held = Held()
    executor = make_executor(queue_limit=1)
    executor.register("x", held)
    peer = started(executor)
    peer.run("x")
    wait_until(lambda: held.runs == 1)
    peer.run("x")
    request = peer.trigger("x")
    reply = peer.post("/run", request)
    assert (reply["code"], reply["reason"]) == (500, "full")
    assert "there is no log" in peer.log(request["logId"])["logContent"]
    held.go.set()
    admin.wait_for(lambda: len(admin.results) == 2)
    assert peer.post("/run", request)["code"] == 200
    admin.result_of(request["logId"])
