"""Executors that come with their group's token: what they may do, and what they are sent."""

from dataclasses import replace
from typing import Any

import pytest

from jobwheel.admin.domain.group_token import GroupToken
from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.wire.messages import WRONG_TOKEN_MESSAGE
from tests.support.live_admin import LiveAdmin, seen
from tests.support.recording_executor import INSTANCE, RecordingExecutor

WRONG = {"code": 500, "msg": WRONG_TOKEN_MESSAGE, "content": None, "data": None}


async def new_group(live: LiveAdmin, app_name: str) -> GroupId:
    view = await live.admin.services.groups.create({"app_name": app_name, "title": app_name}, actor="test")
    return view.group.id


async def new_token(live: LiveAdmin, group_id: GroupId) -> GroupToken:
    return await live.admin.services.group_tokens.make(group_id, actor="test")


class Group:
    """A group with a token, and an executor of it that carries the token."""

    def __init__(self, live: LiveAdmin, group_id: GroupId, token: GroupToken, app_name: str) -> None:
        self.live = live
        self.group_id = group_id
        self.token = token
        self.app_name = app_name

    def executor(self, **fields: Any) -> RecordingExecutor:
        # Of another make it is one of dialect C: older ones know no tokens of groups.
        path = "/run" if "instance" in fields else "/trigger"
        given = {"sends_app_name": True, "reports": False, "path": path, **fields}
        return RecordingExecutor(self.live.url, self.token.secret.reveal(), app_name=self.app_name, **given)


@pytest.fixture
async def orders(live: LiveAdmin) -> Group:
    group_id = await new_group(live, "orders")
    return Group(live, group_id, await new_token(live, group_id), "orders")


@pytest.fixture
async def billing(live: LiveAdmin) -> Group:
    group_id = await new_group(live, "billing")
    return Group(live, group_id, await new_token(live, group_id), "billing")


def addresses(live: LiveAdmin, group: Group) -> list[str]:
    return [each.address for each in live.admin.engine.addresses.candidates(group.group_id)]


async def accepted(live: LiveAdmin, app_name: str) -> RunId:
    run_id = await live.trigger(await live.job(app_name=app_name))
    await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
    return run_id


async def test_a_run_goes_out_with_the_token_that_its_executor_came_with(live: LiveAdmin, orders: Group) -> None:
    async with orders.executor(instance=INSTANCE) as executor:
        await executor.register()
        run_id = await accepted(live, "orders")
        sent = executor.runs()[0].headers
        assert sent["xxl-job-access-token"] == orders.token.secret.reveal()
        assert sent["xxl-job-appname"] == "orders"
        assert (await executor.report(run_id))["code"] == 200
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED


async def test_one_of_the_same_group_that_came_with_the_installations_gets_that(live: LiveAdmin, orders: Group) -> None:
    async with live.executor(reports=False) as executor:
        await executor.register()
        await accepted(live, "orders")
        assert executor.runs()[0].headers["xxl-job-access-token"] == live.token


async def test_another_app_name_is_neither_registered_nor_removed(
    live: LiveAdmin, orders: Group, billing: Group
) -> None:
    async with orders.executor() as executor, billing.executor() as other:
        await other.register()
        body = {**executor.registration(), "registryKey": "billing"}
        for name in ("registry", "registryRemove"):
            reply = await executor.post(name, {**body, "registryValue": other.address})
            assert (reply["code"], reply["msg"].partition(":")[0]) == (500, "registryKey")
        strange = await executor.post("registry", {**executor.registration(), "registryGroup": "ADMIN"})
        assert strange["code"] == 500
        assert (addresses(live, orders), addresses(live, billing)) == ([], [other.address])


@pytest.mark.parametrize("name", ["registry", "registryRemove", "callback", "progress", "addJob", "triggerJob"])
async def test_a_token_needs_its_own_app_name(live: LiveAdmin, orders: Group, billing: Group, name: str) -> None:
    async with orders.executor() as executor:
        body = executor.registration()
        for app_name in ("billing", "", "Orders"):
            executor.app_name = app_name
            assert await executor.post(name, body) == WRONG
        executor.sends_app_name = False
        assert await executor.post(name, body) == WRONG
        executor.app_name, executor.sends_app_name = "orders", True
        assert await executor.post(name, body, f"{orders.token.secret.reveal()}x") == WRONG
    assert addresses(live, orders) == []


async def test_a_result_of_another_groups_run_is_acknowledged_and_changes_nothing(
    live: LiveAdmin, orders: Group, billing: Group
) -> None:
    async with orders.executor() as executor, billing.executor() as other:
        await executor.register()
        await other.register()
        run_id = await accepted(live, "orders")
        told = [{"logId": run_id, "fraction": 0.25, "text": "a quarter"}]
        assert (await executor.post("progress", told))["code"] == 200
        before = await live.run(run_id)
        assert (await other.report(run_id, 500, "forged"))["code"] == 200
        forged = [{"logId": run_id, "fraction": 0.9, "text": "forged"}]
        assert (await other.post("progress", forged))["code"] == 200
        assert await live.run(run_id) == before
        progress = live.admin.services.runs.progress(before)
        assert progress is not None
        assert (progress.fraction, progress.text) == (0.25, "a quarter")
        # Of several in one callback each is judged by itself.
        own = await accepted(live, "billing")
        both = [{"logId": each, "logDateTim": 0, "handleCode": 200, "handleMsg": "done"} for each in (run_id, own)]
        assert (await other.post("callback", both))["code"] == 200
        assert (await live.run(run_id), (await live.run(own)).outcome) == (before, Outcome.SUCCEEDED)
        assert (await executor.report(run_id))["code"] == 200
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED
        assert live.admin.services.runs.progress(await live.run(run_id)) is None


async def test_during_a_rotation_both_are_valid(live: LiveAdmin, orders: Group) -> None:
    tokens = live.admin.services.group_tokens
    async with orders.executor() as executor:
        await executor.register()
        new = await tokens.rotate(orders.group_id, 60, actor="test")
        await executor.register()
        await accepted(live, "orders")
        executor.token = new.secret.reveal()
        await executor.register()
        await accepted(live, "orders")
        sent = [asked.headers["xxl-job-access-token"] for asked in executor.runs()]
        assert sent == [orders.token.secret.reveal(), new.secret.reveal()]
        await tokens.revoke(orders.group_id, orders.token.id, actor="test")
        executor.token = orders.token.secret.reveal()
        assert await executor.post("registry", executor.registration()) == WRONG
        assert addresses(live, orders) == [executor.address]


async def test_who_came_with_a_revoked_token_gets_nothing_any_more(live: LiveAdmin, orders: Group) -> None:
    async with orders.executor() as executor:
        await executor.register()
        run_id = await accepted(live, "orders")
        await live.admin.services.group_tokens.revoke(orders.group_id, orders.token.id, actor="test")
        assert addresses(live, orders) == []
        view = await live.admin.services.groups.get(orders.group_id)
        assert view.live_addresses == ()
        assert await executor.report(run_id) == WRONG
        failed = await live.done(await live.trigger(await live.job()))
        assert failed.outcome is Outcome.FAILED
        assert len(executor.runs()) == 1
        with pytest.raises(Exception, match="cannot be asked"):
            await live.admin.services.run_logs.read(run_id, 1)
        assert "xxl-job-access-token" not in executor.asked[-1].headers


async def test_a_token_that_was_made_elsewhere_is_known_within_a_second(live: LiveAdmin, orders: Group) -> None:
    tokens = live.admin.services.group_tokens

    async def nothing() -> None:
        return

    tokens._make_known = nothing
    new = await tokens.rotate(orders.group_id, 60, actor="test")
    async with replace(orders.executor(), token=new.secret.reveal()) as executor:

        async def look() -> bool:
            return bool((await executor.post("registry", executor.registration()))["code"] == 200)

        await seen(look)
