"""Under admins of other make, whose dialect nobody has told the executor."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from jobwheel import Executor
from jobwheel.wire.codec import encode_envelope
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import DATE_MS, ExecutorPeer
from tests.support.recording_admin import Recorded, RecordingAdmin, wait_until

PARSE_ERROR = encode_envelope(500, "com.google.gson.JsonSyntaxException: Expected another shape")


@dataclass
class Store:
    """What an admin has stored: by log id how often, and the last (code, message, time)."""

    times: Counter[int] = field(default_factory=Counter)
    last: dict[int, tuple[int, str | None, int]] = field(default_factory=dict)

    def add(self, log_id: int, code: int, message: str | None, date: int) -> None:
        self.times[log_id] += 1
        self.last[log_id] = (code, message, date)


Reply = Callable[[Store, Recorded], bytes]


def version_2_2(store: Store, recorded: Recorded) -> bytes:
    if not isinstance(recorded.body, list):
        return PARSE_ERROR
    for item in recorded.body:
        if "executeResult" not in item:
            return encode_envelope(500, "java.lang.NullPointerException")
        result = item["executeResult"]
        store.add(item["logId"], result["code"], result["msg"], item["logDateTim"])
    return encode_envelope(200)


def version_2_4(store: Store, recorded: Recorded) -> bytes:
    """Acknowledges whatever list it is given, and stores 0 for a code that it does not find."""
    if not isinstance(recorded.body, list):
        return PARSE_ERROR
    for item in recorded.body:
        store.add(item["logId"], item.get("handleCode", 0), item.get("handleMsg"), item.get("logDateTim", 0))
    return encode_envelope(200)


def version_3_5(store: Store, recorded: Recorded) -> bytes:
    if refusal := without_app_name(recorded):
        return refusal
    if not isinstance(recorded.body, dict):
        return encode_envelope(500, "openapi invoke error: Expected BEGIN_OBJECT but was BEGIN_ARRAY")
    for item in recorded.body["callbackList"]:
        store.add(item["logId"], item["handleCode"], item["handleMsg"], item["logDateTime"])
    return encode_envelope(200)


def without_app_name(recorded: Recorded) -> bytes | None:
    headers = recorded.headers
    known = (headers.get("xxl-job-appname"), headers.get("xxl-job-access-token")) == ("demo", "group-Kv3-made-up")
    return None if known else encode_envelope(500, "invalid request, accessToken or appname invalid.")


def serve(admin: RecordingAdmin, reply: Reply) -> Store:
    store = Store()

    def answer(recorded: Recorded) -> bytes:
        if recorded.path == "callback":
            return reply(store, recorded)
        return (reply is version_3_5 and without_app_name(recorded)) or encode_envelope(200)

    admin.reply = answer
    return store


def started(make_executor: MakeExecutor, **arguments: Any) -> tuple[Executor, ExecutorPeer]:
    executor = make_executor(access_token="group-Kv3-made-up", **arguments)
    executor.register("x", lambda: "done \U0001f600")
    executor.start_in_background()
    return executor, ExecutorPeer(executor.port, "group-Kv3-made-up")


def run_some(peer: ExecutorPeer, admin: RecordingAdmin, store: Store) -> None:
    """Twenty runs, of which each is stored once, as it ended."""
    log_ids = {peer.run("x", jobId=number % 4) for number in range(20)}
    admin.wait_for(lambda: log_ids <= store.last.keys())
    assert {store.last[log_id] for log_id in log_ids} == {(200, "done \U0001f600", DATE_MS)}
    assert {store.times[log_id] for log_id in log_ids} == {1}


@pytest.mark.parametrize("version", [version_2_2, version_2_4, version_3_5])
def test_the_dialect_is_learnt_and_no_result_is_lost_or_doubled(
    make_executor: MakeExecutor, admin: RecordingAdmin, version: Reply
) -> None:
    store = serve(admin, version)
    executor, peer = started(make_executor)
    admin.wait_for_registration()
    run_some(peer, admin, store)
    refused = [recorded for recorded in admin.of("callback") if isinstance(recorded.body, list)]
    assert version is not version_3_5 or len(refused) == 1
    assert len(admin.of("registry")) == 1
    executor.stop_in_background()
    assert len(admin.of("registryRemove")) == 1


@pytest.mark.parametrize(("before", "after"), [(version_2_4, version_3_5), (version_3_5, version_2_2)])
def test_an_admin_that_is_replaced_by_another_version_is_learnt_anew(
    make_executor: MakeExecutor, admin: RecordingAdmin, before: Reply, after: Reply
) -> None:
    _, peer = started(make_executor)
    run_some(peer, admin, serve(admin, before))
    run_some(peer, admin, serve(admin, after))


def test_each_admin_is_spoken_to_in_its_own(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    stores = [serve(admin, version_3_5)]
    with RecordingAdmin() as other:
        stores.append(serve(other, version_2_2))
        _, peer = started(make_executor, admin=[admin.url, other.url], heartbeat_s=0.05)
        run_some(peer, admin, stores[0])
        admin.stop()
        run_some(peer, other, stores[1])


def test_a_dialect_that_is_set_is_not_doubted(make_executor: MakeExecutor, admin: RecordingAdmin) -> None:
    store = serve(admin, version_3_5)
    _, peer = started(make_executor, dialect="C")
    run_some(peer, admin, store)
    assert all(isinstance(recorded.body, dict) for recorded in admin.of("callback"))


def test_admins_of_ours_get_no_second_request(
    make_executor: MakeExecutor, admin: RecordingAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    refusals = [encode_envelope(500, "the database is away: send it again later")] * 3

    def ours(recorded: Recorded) -> bytes:
        if recorded.path == "callback" and refusals:
            return refusals.pop()
        return encode_envelope(200, value={"features": {"progress": False}})

    admin.reply = ours
    _, peer = started(make_executor)
    wait_until(lambda: "executor.registered" in caplog.text)
    log_id = peer.run("x")
    admin.wait_for(lambda: len(admin.of("callback")) == 4)
    shape = {"logId": log_id, "logDateTim": DATE_MS, "handleCode": 200, "handleMsg": "done \U0001f600"}
    assert [recorded.body for recorded in admin.of("callback")] == [[shape]] * 4


def test_a_name_that_no_header_can_carry_is_none_to_the_admin(
    make_executor: MakeExecutor, admin: RecordingAdmin
) -> None:
    store = serve(admin, version_2_4)
    _, peer = started(make_executor, app_name="订单")
    admin.wait_for_registration()
    run_some(peer, admin, store)
    assert admin.of("registry")[0].body["registryKey"] == "订单"
    assert "xxl-job-appname" not in admin.of("registry")[0].headers
