"""How far runs are: from an executor on the SDK, over the wire, to REST."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel import JobContext
from jobwheel.admin.api.instants import from_text
from tests.support.admin_jobs import Json
from tests.support.live_admin import CLOCK, seen
from tests.support.live_rest import LiveRest, live_rest
from tests.support.recording_executor import INSTANCE

ITEM: Json = {"logId": 1, "fraction": 0.4, "text": "four of ten"}


@pytest.fixture
async def rest(tmp_path: Path) -> AsyncIterator[LiveRest]:
    async with live_rest(tmp_path / "admin") as opened:
        yield opened


async def progress_of(rest: LiveRest, run_id: int) -> Json | None:
    found: Json | None = (await rest.get(f"runs/{run_id}"))["progress"]
    return found


async def test_what_a_handler_tells_is_seen_until_its_run_ends(rest: LiveRest, tmp_path: Path) -> None:
    executor, go_on = rest.executor(tmp_path / "executor"), threading.Event()

    @executor.job("settle")
    def settle(ctx: JobContext) -> None:
        while not go_on.wait(0.1):
            ctx.progress(0.4, "four of ten 任务")

    await asyncio.to_thread(executor.start_in_background)
    try:
        job = await rest.job()
        before_ms = CLOCK.now()
        run = await rest.post(f"jobs/{job['id']}/run", {}, 201)
        assert run["progress"] is None
        progress = await seen(lambda: progress_of(rest, run["id"]))
        assert (progress["fraction"], progress["text"]) == (0.4, "four of ten 任务")
        assert before_ms <= from_text("at", progress["at"]) <= CLOCK.now()
        assert [each["progress"] for each in (await rest.get("runs"))["items"]] == [progress]
    finally:
        go_on.set()
        await asyncio.to_thread(executor.stop_in_background)
    done = await rest.get(f"runs/{run['id']}")
    assert (done["outcome"], done["progress"]) == ("succeeded", None)


async def test_an_executor_of_ours_alone_hears_what_this_admin_does(rest: LiveRest) -> None:
    features = {"features": {"progress": True, "drain": False}}
    for instance, value in ((INSTANCE, features), (None, None)):
        async with rest.live.executor(instance=instance) as executor:
            reply = await executor.post("registry", executor.registration())
            assert (reply["data"], reply["content"]) == (value, value)


async def test_good_items_are_kept_beside_bad_ones(rest: LiveRest) -> None:
    async with rest.live.executor(reports=False) as executor:
        await executor.register()
        run_id = await rest.live.trigger(await rest.live.job())
        reply = await executor.post("progress", [{"logId": run_id}, {**ITEM, "logId": run_id}, {**ITEM, "fraction": 2}])
        assert reply["code"] == 200
        assert reply["msg"] == "item 0: fraction: is missing; item 2: fraction: 2.0 is not between 0 and 1"
        progress = await progress_of(rest, run_id)
        assert progress is not None
        assert progress["text"] == "four of ten"
        # Words that come after the end, as they may by another connection, do not bring it back.
        await executor.report(run_id)
        await executor.post("progress", [{**ITEM, "logId": run_id}])
        assert await progress_of(rest, run_id) is None


@pytest.mark.parametrize("body", [None, 5, "text", ITEM, {"progress": [ITEM]}])
async def test_a_body_that_is_no_list_is_refused(rest: LiveRest, body: object) -> None:
    async with rest.live.executor() as executor:
        reply = await executor.post("progress", body)
        assert reply["code"] == 500
        assert reply["msg"]


async def test_without_the_token_nothing_is_kept(rest: LiveRest) -> None:
    async with rest.live.executor(reports=False) as executor:
        await executor.register()
        run_id = await rest.live.trigger(await rest.live.job())
        reply = await executor.post("progress", [{**ITEM, "logId": run_id}], token="of another")
        assert (reply["code"], reply["msg"]) == (500, "The access token is wrong.")
        assert await progress_of(rest, run_id) is None
