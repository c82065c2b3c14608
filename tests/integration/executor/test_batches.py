"""Many runs in one request: each is answered as if it came alone."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import RecordingAdmin, wait_until


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def post_batch(peer: ExecutorPeer, *runs: object) -> list[dict[str, Any]]:
    """Post a batch, which must be accepted as one; its envelopes."""
    reply = peer.post("/runBatch", runs)
    assert reply["code"] == 200, reply
    assert reply["data"] == reply["content"]
    assert len(reply["data"]) == len(runs)
    return list(reply["data"])


def test_each_run_of_a_batch_has_its_own_answer(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: "ran")
    peer = started(executor)
    first, second = peer.trigger("x"), peer.trigger("x", jobId=8)
    bad = [
        {key: value for key, value in peer.trigger("x").items() if key != "logId"},
        peer.trigger("x", logDateTime=-1),
        "no run at all",
        peer.trigger("nobody"),
        peer.trigger("x", resend=True, instance="4711-another"),
        peer.trigger("x", glueType="GLUE_SHELL"),
    ]
    replies = post_batch(peer, first, *bad, first, second)
    plain = {"code": 200, "msg": None, "content": None, "data": None, "instance": executor.instance}
    assert replies[0] == replies[-1] == plain
    assert {reply["code"] for reply in replies[1:-1]} == {500}
    assert {reply["instance"] for reply in replies} == {executor.instance}
    assert [reply["msg"] for reply in replies[1:4]] == [
        "logId: is missing",
        "logDateTime: is out of range",
        "expected object, got str",
    ]
    reasons = [reply.get("reason") for reply in replies[4:-1]]
    assert reasons == ["unknown_handler", "instance", None, "repeated"]
    admin.wait_for_results({first["logId"], second["logId"]})
    executor.stop_in_background()
    assert sorted(result["logId"] for result in admin.results) == [first["logId"], second["logId"]]


def test_runs_of_one_job_run_in_the_order_of_the_array(executor: Executor, admin: RecordingAdmin) -> None:
    ran: list[str] = []

    def handler(context: JobContext) -> None:
        ran.append(context.parameter)

    executor.register("x", handler)
    peer = started(executor)
    runs = [peer.trigger("x", str(number), jobId=1 + number % 3) for number in range(60)]
    assert {reply["code"] for reply in post_batch(peer, *runs)} == {200}
    admin.wait_for_results({run["logId"] for run in runs})
    for job in range(3):
        assert [each for each in ran if int(each) % 3 == job] == [str(number) for number in range(job, 60, 3)]


def test_the_reply_comes_after_the_log_files(executor: Executor, tmp_path: Path) -> None:
    go = threading.Event()
    executor.register("x", lambda: go.wait(8))
    peer = started(executor)
    runs = [peer.trigger("x") for _ in range(20)]
    post_batch(peer, *runs)
    made = {path.name for path in (tmp_path / "executor").glob("*/*.log")}
    go.set()
    assert made == {f"{run['logId']}.log" for run in runs}


def test_a_queue_that_becomes_full_refuses_the_rest_of_its_job_alone(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    inside, go = threading.Event(), threading.Event()

    def handler() -> None:
        inside.set()
        assert go.wait(8)

    executor = make_executor(queue_limit=2)
    executor.register("x", handler)
    peer = started(executor)
    peer.run("x")
    assert inside.wait(8)
    replies = post_batch(peer, *[peer.trigger("x") for _ in range(3)], peer.trigger("x", jobId=8))
    assert [reply.get("reason") for reply in replies] == [None, None, "full", None]
    go.set()
    admin.wait_for(lambda: len(admin.results) == 4)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "the body is not JSON"),
        (b"{}", "expected array, got object"),
        (b"null", "expected array, got null"),
        (b'[{"jobId":7,"logId":1}', "the body is not JSON"),
        (json.dumps([{"jobId": 7, "logId": n} for n in range(1001)]).encode(), "at most 1000 runs, and this one 1001"),
        (b"[" + b" " * (10 * 1024 * 1024) + b"]", "larger than"),
    ],
    ids=range(6),
)
def test_what_is_no_batch_is_refused_as_a_whole(executor: Executor, body: bytes, words: str) -> None:
    ran: list[int] = []
    executor.register("x", lambda: ran.append(1))
    reply = started(executor).post_raw("/runBatch", body)
    assert (reply["code"], reply["data"]) == (500, None)
    assert words in reply["msg"]
    executor.stop_in_background()
    assert ran == []


def test_an_empty_batch_has_an_empty_answer(executor: Executor) -> None:
    assert post_batch(started(executor)) == []


def test_many_batches_of_the_same_runs_at_once_run_each_once(executor: Executor, admin: RecordingAdmin) -> None:
    ran: list[int] = []

    def handler(context: JobContext) -> None:
        ran.append(context.log_id)

    executor.register("x", handler)
    peer = started(executor)
    runs = [peer.trigger("x", jobId=number) for number in range(10)]
    replies: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: replies.extend(post_batch(peer, *runs))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    admin.wait_for_results({run["logId"] for run in runs})
    executor.stop_in_background()
    assert sorted(reply["code"] for reply in replies) == [200] * 10 + [500] * 70
    assert sorted(ran) == sorted(run["logId"] for run in runs)


def test_an_executor_that_stops_finishes_what_it_took_of_a_batch(executor: Executor, admin: RecordingAdmin) -> None:
    inside, go = threading.Event(), threading.Event()

    def handler() -> str:
        inside.set()
        assert go.wait(8)
        return "finished"

    executor.register("x", handler)
    peer = started(executor)
    runs = [peer.trigger("x") for _ in range(3)]
    post_batch(peer, *runs)
    assert inside.wait(8)
    admin.wait_for_registration()
    stopping = threading.Thread(target=executor.stop_in_background)
    stopping.start()
    admin.wait_for(lambda: bool(admin.of("registryRemove")))
    late = peer.trigger("x")
    wait_until(lambda: post_batch(peer, late)[0].get("reason") == "stopping")
    assert [reply["reason"] for reply in post_batch(peer, runs[0], late)] == ["repeated", "stopping"]
    go.set()
    stopping.join()
    assert {admin.result_of(run["logId"])["handleMsg"] for run in runs} == {"finished"}
    assert late["logId"] not in [result["logId"] for result in admin.results]
