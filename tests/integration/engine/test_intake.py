"""Registration, removal and results over the wire."""

import asyncio
import json
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome, Phase
from tests.support.live_admin import LiveAdmin, live_admin
from tests.support.recording_executor import INSTANCE, RecordingExecutor


@pytest.fixture
async def taken(live: LiveAdmin) -> Any:
    """An executor, and a run that it accepted and has not reported."""
    async with live.executor(reports=False) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        yield executor, run_id


async def test_many_equal_results_at_once_settle_the_run_once(
    live: LiveAdmin, taken: tuple[RecordingExecutor, int]
) -> None:
    executor, run_id = taken
    replies = await asyncio.gather(*(executor.report(run_id, 200, f"result {n}") for n in range(20)))
    assert {reply["code"] for reply in replies} == {200}
    run = await live.run(run_id)  # type: ignore[arg-type]
    assert run.outcome is Outcome.SUCCEEDED
    assert live.admin.engine.collect().outcomes == {Outcome.SUCCEEDED: 1}
    await executor.report(run_id, 500, "late")
    assert await live.run(run_id) == run  # type: ignore[arg-type]


@pytest.mark.parametrize(("names_group", "paths"), [(True, ["/trigger"]), (False, ["/run", "/trigger"])])
async def test_who_registers_as_dialect_c_is_sent_its_runs_so(
    live: LiveAdmin, names_group: bool, paths: list[str]
) -> None:
    async with live.executor(path="/trigger", sends_app_name=names_group) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.outcome is Outcome.SUCCEEDED)
        assert [asked.path for asked in executor.asked] == paths


RESULTS = [
    (200, Outcome.SUCCEEDED, 200),
    (500, Outcome.FAILED, 500),
    (502, Outcome.TIMED_OUT, 502),
    (-1, Outcome.FAILED, -1),
    (137, Outcome.FAILED, 137),
    (0, Outcome.FAILED, 500),
]


async def test_any_code_is_a_result(live: LiveAdmin) -> None:
    async with live.executor(reports=False) as executor:
        await executor.register()
        job = await live.job()
        for code, outcome, stored in RESULTS:
            run_id = await live.trigger(job)
            await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
            assert (await executor.report(run_id, code))["code"] == 200
            run = await live.run(run_id)
            assert (run.outcome, run.trigger_code, run.handle_code) == (outcome, 200, stored)


@pytest.mark.parametrize("dialect", ["A", "B", "C"])
async def test_results_of_every_dialect(live: LiveAdmin, taken: tuple[RecordingExecutor, int], dialect: str) -> None:
    executor, run_id = taken
    bodies: dict[str, object] = {
        "A": [{"logId": run_id, "logDateTim": 0, "executeResult": {"code": 200, "msg": "done"}}],
        "B": [{"logId": run_id, "logDateTim": 0, "handleCode": 200, "handleMsg": "done"}],
        "C": {"callbackList": [{"logId": run_id, "logDateTime": 0, "handleCode": 200, "handleMsg": "done"}]},
    }
    assert (await executor.post("callback", bodies[dialect]))["code"] == 200
    run = await live.run(run_id)  # type: ignore[arg-type]
    assert (run.outcome, run.handle_message) == (Outcome.SUCCEEDED, "done")


@pytest.mark.parametrize("message", ["quote \" ' \\ \f \N{ROCKET} 账", "x" * 200_000, "nul \x00", ""])
async def test_any_message_can_be_stored(live: LiveAdmin, taken: tuple[RecordingExecutor, int], message: str) -> None:
    executor, run_id = taken
    assert (await executor.report(run_id, 200, message))["code"] == 200
    stored = (await live.run(run_id)).handle_message  # type: ignore[arg-type]
    assert stored is not None
    assert len(stored.encode()) <= 60_000
    if len(message) < 60_000:
        assert stored == message.replace("\x00", "\ufffd")
    else:
        assert stored.endswith("cut: 200000 bytes in all")


async def test_one_bad_item_does_not_block_the_others(live: LiveAdmin, taken: tuple[RecordingExecutor, int]) -> None:
    executor, run_id = taken
    items = [
        {"logId": "seven", "handleCode": 200},
        {"logId": run_id},
        {"logId": 2**63 - 1, "logDateTim": 0, "handleCode": 200},
        {"logId": run_id, "logDateTim": 0, "handleCode": 200, "handleMsg": "good"},
    ]
    reply = await executor.post("callback", items)
    assert reply["code"] == 200
    assert "item 0" in reply["msg"]
    assert "item 1: handleCode: is missing" in reply["msg"]
    assert (await live.run(run_id)).handle_message == "good"  # type: ignore[arg-type]


async def test_a_result_of_a_run_that_nobody_knows_is_acknowledged(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        assert (await executor.report(4711))["code"] == 200


async def test_results_of_runs_that_are_not_there_are_named(
    live: LiveAdmin, taken: tuple[RecordingExecutor, int]
) -> None:
    executor, run_id = taken
    ids = [999_999, run_id, *range(2**62, 2**62 + 22)]
    items = [{"logId": each, "logDateTim": 0, "handleCode": 200, "handleMsg": "done"} for each in ids]
    reply = await executor.post("callback", [*items, {"logId": "x"}])
    assert reply["code"] == 200
    bad, _, unknown = reply["msg"].partition("; ")
    assert bad.startswith("item 24: logId")
    assert unknown.startswith(f"there is no run 999999, {2**62}, ")
    assert unknown.endswith(" and 3 more: nothing was stored of it")
    assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED  # type: ignore[arg-type]
    # A repeat is nothing to tell of.
    assert (await executor.report(run_id, 200, "done"))["msg"] is None


@pytest.mark.parametrize("token", ["", "wrong"])
@pytest.mark.parametrize("name", ["registry", "registryRemove", "callback"])
async def test_without_the_token_nothing_is_done(
    live: LiveAdmin, taken: tuple[RecordingExecutor, int], name: str, token: str
) -> None:
    executor, run_id = taken
    stranger = {**executor.registration(), "registryValue": "http://127.0.0.1:7/"}
    bodies: dict[str, object] = {
        "registry": stranger,
        "registryRemove": executor.registration(),
        "callback": [{"logId": run_id, "logDateTim": 0, "handleCode": 200}],
    }
    reply = await executor.post(name, bodies[name], token)
    assert (reply["code"], reply["msg"]) == (500, "The access token is wrong.")
    assert (await live.run(run_id)).phase is Phase.ACCEPTED  # type: ignore[arg-type]
    group_id = await live.group_id()
    assert [each.address for each in live.admin.engine.addresses.candidates(group_id)] == [executor.address]


MALFORMED = [
    ("callback", "not json", "JSON"),
    ("callback", "{}", "callbackList"),
    ("callback", '"text"', "array"),
    ("registry", "[]", "object"),
    ("registry", '{"registryGroup":"EXECUTOR","registryKey":"orders"}', "registryValue"),
    ("registry", '{"registryGroup":"EXECUTOR","registryKey":"","registryValue":"http://a/"}', "registryKey"),
    ("registry", '{"registryGroup":"EXECUTOR","registryKey":"o","registryValue":"a b"}', "registryValue"),
    ("registry", '{"registryGroup":"EXECUTOR","registryKey":"o","registryValue":"http://a,http://b"}', "Value"),
    (
        "registry",
        json.dumps({"registryGroup": "x" * 51, "registryKey": "o", "registryValue": "http://a/"}),
        "registryGroup",
    ),
    ("unknown", "{}", "uri-mapping(/api/unknown) not found"),
    ("registry/more", "{}", "uri-mapping(/api/registry/more) not found"),
]


async def post_raw(executor: RecordingExecutor, path: str, body: str) -> tuple[int, dict[str, Any]]:
    """The HTTP status and the envelope of a body that may be anything."""
    headers = {"XXL-JOB-ACCESS-TOKEN": executor.token}
    reply = await executor._client.post(f"{executor.admin_url}{path}", body.encode(), headers, 8.0)
    return reply.status, json.loads(reply.body)


async def test_malformed_input_is_answered_with_what_is_wrong(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        for path, body, words in MALFORMED:
            status, envelope = await post_raw(executor, f"/api/{path}", body)
            assert (status, envelope["code"]) == (200, 500), body
            assert words in envelope["msg"]


async def test_both_roots_and_stray_slashes(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        body = json.dumps(executor.registration())
        for root in ("/api/", "/xxl-job-admin/api/", "//api//", "/xxl-job-admin//api/"):
            for path, code in (("registry", 200), ("registry/", 200), ("nothing", 500)):
                status, envelope = await post_raw(executor, f"{root}{path}", body)
                assert (status, envelope["code"]) == (200, code), f"{root}{path}"


async def test_rest_is_not_taken_for_the_wire(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        for path in ("/api/v1/jobs", "/api/v1", "/api/v1/nothing"):
            reply = await executor._client.post(f"{live.url}{path}", b"{}", {}, 8.0)
            assert reply.status in (401, 404, 405, 415)
            assert "error" in json.loads(reply.body)


async def test_ours_is_told_what_it_may_count_on_and_others_are_not(live: LiveAdmin) -> None:
    async with live.executor() as other, live.executor(instance=INSTANCE) as ours:
        assert (await other.post("registry", other.registration()))["data"] is None
        answer = await ours.post("registry", ours.registration())
        assert isinstance(answer["data"]["features"], dict)


@pytest.mark.parametrize("auto_create", [True, False])
async def test_an_app_name_without_a_group(tmp_path: Any, auto_create: bool) -> None:
    async with (
        live_admin(tmp_path / "data", auto_create_groups=auto_create) as live,
        live.executor(app_name="new-app") as executor,
    ):
        reply = await executor.post("registry", executor.registration())
        if auto_create:
            assert reply["code"] == 200
            run = await live.done(await live.trigger(await live.job(app_name="new-app")))
            assert run.outcome is Outcome.SUCCEEDED
        else:
            assert reply["code"] == 500
            assert "no group has the app name 'new-app'" in reply["msg"]
            assert "JOBWHEEL_AUTO_CREATE_GROUPS" in reply["msg"]


async def test_many_executors_beating_at_once_are_all_listed(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        names = [{**executor.registration(), "registryValue": f"http://10.0.0.{n}:9999/"} for n in range(1, 60)]
        replies = await asyncio.gather(*(executor.post("registry", name) for name in names * 2))
    assert {reply["code"] for reply in replies} == {200}
    group_id = await live.group_id()
    assert len(live.admin.engine.addresses.candidates(group_id)) == len(names)
    assert len((await live.admin.services.groups.get(group_id)).group.addresses) == len(names)
