"""What a job says of its runs holds on the reference's own executors: blocking, routes, scripts in Groovy, tokens."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.live_admin import until
from tests.support.live_rest import live_rest
from tests.support.operator_view import OperatorView
from tests.support.reference_executor import ReferenceExecutors

pytestmark = [pytest.mark.process, pytest.mark.timeout(90)]
LONG = "60000"
GROOVY = """
import com.xxl.job.core.context.XxlJobHelper;
import com.xxl.job.core.handler.IJobHandler;

public class Settle extends IJobHandler {
    public void execute() throws Exception {
        XxlJobHelper.handleSuccess("groovy got " + XxlJobHelper.getJobParam());
    }
}
"""


@pytest.fixture
async def view(tmp_path: Path) -> AsyncIterator[OperatorView]:
    async with live_rest(tmp_path / "data", send_timeout_s=2.0) as rest:
        yield OperatorView(rest)


@pytest.mark.parametrize("version", ["2.2.0", "3.3.2"])
async def test_each_block_strategy_holds(version: str, executors: ReferenceExecutors, view: OperatorView) -> None:
    async with executors.start(version, view.rest.live.url, view.rest.live.token) as executor:
        await view.registered(executor.address)
        await asyncio.gather(_check_serial(view), _check_discard(view), _check_cover(view))


async def _check_serial(view: OperatorView) -> None:
    job_id = await view.job("sleep", "300")
    # One after the other: what is triggered at once goes over connections of its own.
    runs = [(await view.taken(await view.trigger(job_id)))["id"] for _ in range(3)]
    ends = [await view.done(run_id) for run_id in runs]
    assert [run["outcome"] for run in ends] == ["succeeded"] * 3
    assert [run["ended_at"] for run in ends] == sorted(run["ended_at"] for run in ends)


async def _check_discard(view: OperatorView) -> None:
    job_id = await view.job("sleep", LONG, block_strategy="DISCARD_LATER")
    first = await view.trigger(job_id)
    await view.log_shows(first, "sleeps")
    second = await view.done(await view.trigger(job_id))
    assert (second["outcome"], second["trigger_code"], second["handle_code"]) == ("discarded", 500, 0)
    assert "Discard Later" in second["trigger_message"]
    assert (await view.look(first))["phase"] == "accepted"


async def _check_cover(view: OperatorView) -> None:
    job_id = await view.job("sleep", LONG, block_strategy="COVER_EARLY")
    first = await view.trigger(job_id)
    await view.log_shows(first, "sleeps")
    second = await view.trigger(job_id, "10")
    outcome, code, message = await view.ended(first)
    assert (outcome, code) == ("covered", 500)
    assert "Cover Early" in message
    assert await view.ended(second) == ("succeeded", 200, "slept 10 ms")


async def test_two_versions_side_by_side_share_a_groups_runs(executors: ReferenceExecutors, view: OperatorView) -> None:
    live = view.rest.live
    async with (
        executors.start("2.2.0", live.url, live.token) as older,
        executors.start("3.3.2", live.url, live.token) as newer,
    ):
        await view.registered(older.address, newer.address)
        await _check_broadcast(view)
        await _check_busyover(view)
        first, second = sorted((older, newer), key=lambda executor: executor.address)
        first.freeze()
        run = await view.done(await view.run("echo", "a", route_strategy="FAILOVER"))
        assert (run["outcome"], run["executor_address"]) == ("succeeded", second.address)
        first.wake()


async def _check_broadcast(view: OperatorView) -> None:
    job_id = await view.job("shard", route_strategy="SHARDING_BROADCAST")
    await view.done(await view.trigger(job_id))
    runs = (await view.rest.get(f"runs?job_id={job_id}"))["items"]
    ends = [await view.done(run["id"]) for run in runs]
    said = sorted((run["outcome"], run["handle_message"]) for run in ends)
    assert said == [("succeeded", "shard 0 of 2"), ("succeeded", "shard 1 of 2")]
    assert len({run["executor_address"] for run in ends}) == 2


async def _check_busyover(view: OperatorView) -> None:
    job_id = await view.job("sleep", LONG, route_strategy="BUSYOVER")
    taken = [await view.in_phase(await view.trigger(job_id), "accepted") for _ in range(2)]
    addresses = [run["executor_address"] for run in taken]
    assert len(set(addresses)) == 2
    third = await view.done(await view.trigger(job_id))
    assert (third["outcome"], third["handle_code"]) == ("failed", 0)
    assert all(address in third["trigger_message"] for address in addresses)


async def test_a_script_in_groovy_runs_where_groovy_is(executors: ReferenceExecutors, view: OperatorView) -> None:
    async with executors.start("2.4.1", view.rest.live.url, view.rest.live.token) as executor:
        await view.registered(executor.address)
        job = {"glue_type": "GLUE_GROOVY", "glue_source": GROOVY, "glue_remark": "says what it is given"}
        assert await view.ended(await view.run("", "a", **job)) == ("succeeded", 200, "groovy got a")


async def test_a_wrong_token_opens_neither_side(
    executors: ReferenceExecutors, view: OperatorView, caplog: pytest.LogCaptureFixture
) -> None:
    async with executors.start("3.3.2", view.rest.live.url, "a wrong one") as executor:
        # It asks for its registration at once.
        await until(lambda: "wire.wrong_token" in caplog.text, 30)
        group = {"app_name": "fixed", "title": "Fixed", "address_type": "fixed", "addresses": [executor.address]}
        view.group_id = (await view.rest.post("groups", group, 201))["id"]
        run = await view.done(await view.run("echo"))
        assert (run["outcome"], run["trigger_code"], run["handle_code"]) == ("failed", 500, 0)
        assert "The access token is wrong." in run["trigger_message"]
        groups = (await view.rest.get("groups"))["items"]
        assert [each["app_name"] for each in groups] == ["fixed"]
