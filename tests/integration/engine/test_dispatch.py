"""What becomes of a run, by what its executors do."""
# ruff: noqa: RUF001 - Chinese has its own punctuation marks

import asyncio
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store import runs
from tests.support.due_runs import all_done, write_due
from tests.support.http_peer import unused_port
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, until
from tests.support.recording_executor import (
    INSTANCE,
    Answer,
    Asked,
    RecordingExecutor,
    accept,
    garbage,
    hang,
    refuse,
)
from tests.support.store import new_run


async def register_dead(live: LiveAdmin) -> str:
    """An address that registered and then vanished: connections are refused."""
    async with live.executor(port=unused_port()) as executor:
        await executor.register()
        return executor.address


@pytest.mark.parametrize(
    ("path", "instance"), [("/run", None), ("/trigger", None), ("/run", INSTANCE)], ids=["A and B", "C", "ours"]
)
async def test_a_run_of_each_kind_of_executor(live: LiveAdmin, path: str, instance: str | None) -> None:
    async with live.executor(path=path, instance=instance) as executor:
        await executor.register()
        job = await live.job(parameter="day=2026-11-27")
        run = await live.done(await live.trigger(job))
    assert (run.outcome, run.trigger_code, run.handle_code, run.handle_message) == (Outcome.SUCCEEDED, 200, 200, "done")
    assert run.executor_address == executor.address
    assert run.trigger_message is not None
    assert f"{executor.address} accepted (code 200)" in run.trigger_message
    sent = executor.runs()[-1]
    assert (sent.path, sent.log_id, sent.body["executorParams"]) == (path, run.id, "day=2026-11-27")
    assert sent.headers["xxl-job-access-token"] == live.token
    assert sent.headers["xxl-job-appname"] == "orders"
    assert ("scheduledTime" in sent.body) == (instance is not None)
    assert sent.body["logDateTime"] == run.triggered_ms


@pytest.mark.parametrize(
    ("answer", "outcome", "code"),
    [
        (refuse(500, msg="job handler [settle] not found."), Outcome.FAILED, 500),
        (refuse(501, msg="odd"), Outcome.FAILED, 501),
        (refuse(0, msg="zero"), Outcome.FAILED, 500),
        (refuse(500, msg="block strategy effect\uff1aDiscard Later"), Outcome.DISCARDED, 500),
        (refuse(500, reason="full", msg="the queue is full"), Outcome.DISCARDED, 500),
    ],
)
async def test_a_refusal_ends_the_run_and_goes_to_no_other(
    live: LiveAdmin, answer: Answer, outcome: Outcome, code: int
) -> None:
    async with live.executor(answer) as refusing, live.executor(answer) as other:
        await refusing.register()
        await other.register()
        run = await live.done(await live.trigger(await live.job()))
    assert (run.outcome, run.trigger_code, run.handle_code) == (outcome, code, 0)
    assert len(refusing.runs()) + len(other.runs()) == 1


async def test_who_knows_neither_path_refuses(live: LiveAdmin) -> None:
    async with live.executor(path="/elsewhere") as executor:
        await executor.register()
        run = await live.done(await live.trigger(await live.job()))
    assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
    assert [asked.path for asked in executor.asked] == ["/run", "/trigger"]


@pytest.mark.parametrize(
    "strategy",
    ["FIRST", "LAST", "ROUND", "RANDOM", "CONSISTENT_HASH", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"],
)
async def test_a_dead_address_is_passed_over_and_out_from_then_on(live: LiveAdmin, strategy: str) -> None:
    dead = [await register_dead(live) for _ in range(3)]
    async with live.executor() as executor:
        await executor.register()
        job = await live.job(route_strategy=strategy)
        runs = [await live.done(await live.trigger(job)) for _ in range(4)]
    assert {(run.outcome, run.executor_address) for run in runs} == {(Outcome.SUCCEEDED, executor.address)}
    assert len(executor.runs()) == 4
    for address in dead:
        assert sum(f"{address} unreachable" in (run.trigger_message or "") for run in runs) <= 1


async def test_an_executor_that_is_stopping_is_passed_over(live: LiveAdmin) -> None:
    async with live.executors(2, INSTANCE) as (leaver, executor):
        leaver.answer = refuse(500, reason="stopping", msg="this executor is stopping")
        job = await live.job(route_strategy="FIRST")
        # Who made its times anew would make other ones.
        late = await live.late_run(job)
        first = await live.done(late.id)
        more = [await live.done(await live.trigger(job)) for _ in range(2)]
        sent = [leaver.runs()[0].body, executor.runs()[0].body]
    assert {run.executor_address for run in [first, *more]} == {executor.address}
    assert len(leaver.runs()) == 1
    assert f"{leaver.address} takes no new runs" in (first.trigger_message or "")
    assert [(body["logId"], body["logDateTime"], body["scheduledTime"]) for body in sent] == [
        (late.id, late.triggered_ms, late.planned_ms)
    ] * 2


async def test_without_a_live_address_the_run_fails_and_says_so(live: LiveAdmin) -> None:
    dead = await register_dead(live)
    job = await live.job()
    first, second = [await live.done(await live.trigger(job)) for _ in range(2)]
    assert (first.outcome, first.trigger_code) == (Outcome.FAILED, 500)
    assert f"{dead} unreachable" in (first.trigger_message or "")
    assert "no address could be reached" in (first.trigger_message or "")
    assert second.outcome is Outcome.FAILED
    assert "no live address" in (second.trigger_message or "")


async def test_an_address_named_by_hand_gets_the_run_or_nobody(live: LiveAdmin) -> None:
    async with live.executor() as first, live.executor() as second:
        await first.register()
        await second.register()
        job = await live.job()
        for named in (first, second):
            run = await live.done(await live.trigger(job, named.address))
            assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, named.address)
        await first.disappear()
        run, again = [await live.done(await live.trigger(job, first.address)) for _ in range(2)]
    assert (run.outcome, again.outcome) == (Outcome.FAILED, Outcome.FAILED)
    assert f"of those named by hand ({first.address}) none is live now" in (again.trigger_message or "")
    assert (len(first.runs()), len(second.runs())) == (1, 1)


async def test_an_address_that_left_is_never_sent_to(live: LiveAdmin) -> None:
    async with live.executor() as leaver, live.executor() as stayer:
        await leaver.register()
        await stayer.register()
        job = await live.job(route_strategy="ROUND")
        await live.done(await live.trigger(job))
        before = len(leaver.runs())
        await leaver.leave()
        for _ in range(12):
            run = await live.done(await live.trigger(job))
            assert run.executor_address == stayer.address
        assert len(leaver.runs()) == before
        await leaver.register()
        for _ in range(2):
            await live.done(await live.trigger(job))
        assert len(leaver.runs()) == before + 1


async def test_a_candidate_that_leaves_before_its_turn_is_passed_over(live: LiveAdmin) -> None:
    async with live.executor() as one, live.executor() as two, live.executor() as three:
        first, second, third = sorted((one, two, three), key=lambda executor: executor.address)
        for executor in (first, second, third):
            await executor.register()

        async def let_the_next_leave(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
            await second.leave()
            return executor.envelope(500, reason="stopping")

        first.answer = let_the_next_leave
        run = await live.done(await live.trigger(await live.job(route_strategy="FIRST")))
    assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, third.address)
    assert second.runs() == []
    assert f"{second.address} has left the registry" in (run.trigger_message or "")


async def test_an_executor_that_hangs_holds_nobody_else_up(live: LiveAdmin) -> None:
    async with live.executor(hang, reports=False) as dead, live.executor(app_name="billing") as executor:
        await dead.register()
        await executor.register()
        await write_due(live, await live.job(), 150)
        await until(lambda: len(dead.runs()) >= 20)
        in_flight = live.admin.engine.launcher.sends_in_flight
        run = await live.done(await live.trigger(await live.job(app_name="billing")))
        assert run.outcome is Outcome.SUCCEEDED
        # It did not wait for the end of any of the others.
        assert live.admin.engine.launcher.sends_in_flight >= in_flight
        assert len(dead.runs()) == 32


@pytest.mark.timeout(40)
async def test_not_even_a_great_many_runs_of_it_do(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def hold(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        await go_on.wait()
        return await accept(executor, asked)

    async with (
        live_admin(tmp_path / "data", wheel_capacity=1000, send_timeout_s=60.0) as live,
        live.executor(hold, reports=False) as dead,
        live.executor(app_name="billing") as executor,
    ):
        await dead.register()
        await executor.register()
        stuck, job = await live.job(), await live.job(app_name="billing")
        run = new_run(live.admin.engine.node_id, CLOCK.now() - 60_000, job_id=stuck.id)
        await live.admin.database.write(runs.insert_runs, live.admin.installation.zone, [run] * 3000)
        await until(lambda: live.admin.engine.launcher.put_off_jobs() == [stuck.id])
        # Within the time that they are waited for: long before a send comes to its end.
        for _ in range(5):
            assert (await live.done(await live.trigger(job))).outcome is Outcome.SUCCEEDED
        assert live.admin.engine.launcher.parked <= 500
        await until(lambda: live.admin.engine.collect().left_in_database > 1500)
        # Once it works again, all of them come to their turn.
        go_on.set()
        await until(lambda: len({run.log_id for run in dead.runs()}) == 3000, 25)


async def test_runs_that_waited_for_an_address_arrive_in_the_order_in_which_they_came_due(tmp_path: Path) -> None:
    async with live_admin(tmp_path / "data", address_limit=1) as live, live.executor() as executor:
        await executor.register()
        job = await live.job()
        run_ids = await write_due(live, job, 300)
        await all_done(live, job)
        assert [run.log_id for run in executor.runs()] == run_ids


async def test_a_result_before_the_answer(live: LiveAdmin) -> None:
    answered = asyncio.Event()

    async def report_first(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        await executor.report(asked.log_id)
        answered.set()
        return {"code": 200}

    async with live.executor(report_first) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await answered.wait()
        run = await live.run_when(run_id, lambda run: run.accepted_ms is not None)
    assert (run.phase, run.outcome, run.handle_code) == (None, Outcome.SUCCEEDED, 200)
    assert "accepted" in (run.trigger_message or "")


async def test_garbage_is_no_answer(live: LiveAdmin) -> None:
    async with live.executor(garbage) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        run = await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
        assert "may or may not have arrived" in (run.trigger_message or "")
        assert len(executor.runs()) == 1
        await executor.report(run_id)
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED


async def test_a_run_for_which_there_is_no_slot_waits_its_turn(live: LiveAdmin) -> None:
    release = asyncio.Event()

    async def slowly(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        await release.wait()
        return await accept(executor, asked)

    async with live.executor(slowly) as executor:
        await executor.register()
        run_ids = await write_due(live, await live.job(), 60)
        await until(lambda: len(executor.runs()) == 32)
        figures = live.admin.engine.collect()
        assert figures.sends_in_flight + sum(lane.waiting for lane in figures.lanes) <= 60
        release.set()
        for run_id in run_ids:
            assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
        assert sorted(run.log_id for run in executor.runs()) == run_ids


# Those that are sent give up their places in time.
@pytest.mark.timeout(30)
@pytest.mark.parametrize("send_timeout_s", [1.0])
@pytest.mark.parametrize("strategy", ["FIRST", "FAILOVER"])
async def test_runs_that_wait_behind_an_address_that_leaves_go_elsewhere(live: LiveAdmin, strategy: str) -> None:
    async with live.executor(hang, reports=False) as one, live.executor() as two:
        first, second = sorted((one, two), key=lambda executor: executor.address)
        first.answer, second.answer = hang, accept
        first.reports, second.reports = False, True
        for executor in (first, second):
            await executor.register()
        job = await live.job(route_strategy=strategy)
        await write_due(live, job, 150)
        await until(lambda: live.admin.engine.launcher.parked >= 20)
        await first.leave()
        await until(lambda: live.admin.engine.launcher.parked == 0)
        await until(lambda: len(second.runs()) >= 20)
        assert not {run.log_id for run in first.runs()} & {run.log_id for run in second.runs()}


async def test_a_run_is_told_of_in_the_installations_language(tmp_path: Path) -> None:
    async with live_admin(tmp_path / "data", language="zh-CN") as live:
        dead = await register_dead(live)
        first, second = [await live.done(await live.trigger(await live.job())) for _ in range(2)]
    assert f"执行器地址：{dead}\n" in (first.trigger_message or "")
    assert f"{dead} 无法连接（code 500）：" in (first.trigger_message or "")
    assert (first.trigger_message or "").endswith("所有地址均无法连接\n")
    assert "没有在线的执行器地址" in (second.trigger_message or "")
