"""What the executor answers to each kind of request, good and bad."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer

TOKEN = "wheel-Qx7-made-up"
PATHS = ["/beat", "/idleBeat", "/run", "/trigger", "/runBatch", "/kill", "/runStatus", "/log"]


class Bench:
    """An executor that many tests share: none of them makes it run anything."""

    def __init__(self, folder: Path) -> None:
        self.ran: list[int] = []
        self.executor = Executor(port=0, log_path=folder)
        self.executor.register("x", lambda: self.ran.append(1))
        self.executor.register("known", lambda: self.ran.append(1))
        self.peer = started(self.executor)

    def assert_nothing_was_run(self) -> None:
        assert self.peer.post("/idleBeat", {"jobId": 7})["code"] == 200
        assert self.ran == []


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    shared = Bench(tmp_path_factory.mktemp("executor"))
    yield shared
    shared.executor.stop_in_background()


def test_every_answer_carries_instance_content_and_data(executor: Executor) -> None:
    peer = started(executor)
    reply = peer.post_raw("/beat", b"")
    assert reply == {"code": 200, "msg": None, "content": None, "data": None, "instance": executor.instance}


def started(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


@pytest.mark.parametrize("body", [b"", b"{}", b'""', b"anything"])
def test_beat_takes_any_body(bench: Bench, body: bytes) -> None:
    assert bench.peer.post_raw("/beat", body)["code"] == 200


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_nothing_is_done(make_executor: MakeExecutor, path: str) -> None:
    ran: list[int] = []
    executor = make_executor(access_token=TOKEN)
    executor.register("x", lambda: ran.append(1))
    peer = started(executor)
    for token in (None, "", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "\xe9"):
        peer.token = token
        request = peer.trigger("x")
        reply = peer.post(path, {**request, "fromLineNum": 1})
        assert (reply["code"], reply["msg"]) == (500, "The access token is wrong."), token
        peer.token = TOKEN
        assert "there is no log" in peer.log(request["logId"])["logContent"]
    executor.stop_in_background()
    assert ran == []


def test_each_of_several_tokens_is_accepted(make_executor: MakeExecutor) -> None:
    executor = make_executor(access_token=[TOKEN, "older-Zk2"])
    peer = started(executor)
    for token in (TOKEN, "older-Zk2"):
        peer.token = token
        assert peer.post("/beat", {})["code"] == 200


def test_unknown_paths_and_methods(bench: Bench) -> None:
    peer = bench.peer
    assert peer.post("/skill", {"jobId": 7})["msg"] == "invalid request, uri-mapping(/skill) not found."
    assert peer.post_raw("/run", b"", method="GET")["msg"] == "invalid request, HttpMethod not support."
    assert peer.post("//beat/", {})["code"] == 200


def without(name: str) -> Callable[[dict[str, Any]], bytes]:
    return lambda request: json.dumps({key: value for key, value in request.items() if key != name}).encode()


def changed(**fields: object) -> Callable[[dict[str, Any]], bytes]:
    return lambda request: json.dumps({**request, **fields}).encode()


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (lambda _: b"", "JSON"),
        (lambda _: b"{", "JSON"),
        (lambda _: b"[" * 100_000, "object"),
        (lambda _: b'{"a":' * 100_000, "nested"),
        (lambda _: b"\xff\xfe", "JSON"),
        (lambda _: b"[]", "object"),
        (lambda _: b'"x"', "object"),
        (lambda _: b"7", "object"),
        (without("jobId"), "jobId"),
        (without("logId"), "logId"),
        (changed(jobId="seven"), "jobId"),
        (changed(logId=1.5), "logId"),
        (changed(logId=2**70), "logId"),
        (changed(logDateTime="now"), "logDateTime"),
        (changed(logDateTime=-1), "logDateTime"),
        (changed(logDateTime=10**17), "logDateTime"),
        (changed(executorParams=["a"]), "executorParams"),
        (changed(executorTimeout="x"), "executorTimeout"),
        (changed(resend="x"), "resend"),
        (changed(executorParams="x" * (11 * 1024 * 1024)), "larger"),
    ],
)
def test_a_malformed_run_is_refused_by_name(bench: Bench, body: Callable[[dict[str, Any]], bytes], named: str) -> None:
    reply = bench.peer.post_raw("/run", body(bench.peer.trigger("x")))
    assert reply["code"] == 500
    assert named in reply["msg"]
    bench.assert_nothing_was_run()


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/idleBeat", b"{}", "jobId"),
        ("/idleBeat", b"x", "JSON"),
        ("/kill", b"{}", "jobId"),
        ("/kill", b'{"jobId": 7, "logId": "x"}', "logId"),
        ("/kill", b"[7]", "object"),
        ("/runStatus", b"{}", "logIds"),
        ("/runStatus", b'{"logIds": 7}', "logIds"),
        ("/runStatus", b'{"logIds": ["x"]}', "logIds"),
        ("/runStatus", b'{"logIds": [' + b"1," * 10_000 + b"1]}", "logIds"),
        ("/log", b"{}", "logId"),
        ("/log", b'{"logId": 1, "fromLineNum": "x"}', "fromLineNum"),
        ("/log", b'{"logId": 1, "logDateTim": -5}', "logDateTime"),
    ],
)
def test_other_malformed_requests(bench: Bench, path: str, body: bytes, named: str) -> None:
    reply = bench.peer.post_raw(path, body)
    assert reply["code"] == 500
    assert named in reply["msg"]
    assert reply["instance"] == bench.executor.instance


@pytest.mark.parametrize(
    ("fields", "words", "reason"),
    [
        ({"executorHandler": "other"}, ["'other'", "known, x"], "unknown_handler"),
        ({"executorHandler": None}, ["known, x"], "unknown_handler"),
        ({"glueType": "GLUE_SHELL"}, ["GLUE_SHELL", "scripts"], None),
        ({"glueType": None}, ["glueType"], None),
    ],
)
def test_what_is_refused_says_why(bench: Bench, fields: dict[str, Any], words: list[str], reason: str | None) -> None:
    request = bench.peer.trigger("x", **fields)
    reply = bench.peer.post("/run", request)
    assert reply["code"] == 500
    assert all(word in reply["msg"] for word in words), reply["msg"]
    assert reply.get("reason") == reason
    assert "there is no log" in bench.peer.log(request["logId"])["logContent"]
    bench.assert_nothing_was_run()


@pytest.mark.parametrize("strategy", [None, "", "SERIAL_EXECUTION", "DISCARD_LATER", "COVER_EARLY", "OTHER"])
@pytest.mark.parametrize("path", ["/run", "/trigger"])
def test_a_job_without_a_run_takes_one_whatever_the_strategy(
    executor: Executor, strategy: str | None, path: str
) -> None:
    executor.register("x", lambda: None)
    peer = started(executor)
    assert peer.post(path, peer.trigger("x", executorBlockStrategy=strategy))["code"] == 200


def test_log_takes_both_spellings_of_the_date(executor: Executor) -> None:
    executor.register("x", lambda: None)
    peer = started(executor)
    log_id = peer.run("x")
    executor.stop_in_background()
    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    for name in ("logDateTim", "logDateTime"):
        reply = peer.post("/log", {"logId": log_id, name: DATE_MS, "fromLineNum": -3})
        assert reply["data"]["fromLineNum"] == 1
        assert reply["data"]["toLineNum"] == 2
        assert reply["data"]["isEnd"] is True


@pytest.mark.parametrize("planned_ms", [253_402_300_800_000, -62_135_596_800_001, 2**62])
def test_a_planned_time_that_no_calendar_has_is_refused_by_name(bench: Bench, planned_ms: int) -> None:
    request = bench.peer.trigger("x", scheduledTime=planned_ms)
    alone, batched = bench.peer.post("/run", request), bench.peer.post("/runBatch", [request])["data"][0]
    for reply in (alone, batched):
        assert reply["code"] == 500
        assert "scheduledTime" in reply["msg"]
    bench.assert_nothing_was_run()
