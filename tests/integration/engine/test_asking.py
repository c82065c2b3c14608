"""FAILOVER and BUSYOVER: executors are asked before a run takes off."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome
from tests.support.due_runs import write_due
from tests.support.http_peer import unused_port
from tests.support.live_admin import LiveAdmin, live_admin, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept, hang, refuse


async def register_dead(live: LiveAdmin, port: int) -> str:
    """An address that registered and then vanished."""
    async with live.executor(port=port) as executor:
        await executor.register()
        return executor.address


async def never(_: RecordingExecutor, __: Asked) -> dict[str, Any]:
    """No answer to a question."""
    await asyncio.Event().wait()
    raise AssertionError


async def test_failover_takes_the_first_that_answers(live: LiveAdmin) -> None:
    async with live.executor() as alive:
        await alive.register()
        dead = [await register_dead(live, unused_port()) for _ in range(3)]
        run = await live.done(await live.trigger(await live.job(route_strategy="FAILOVER")))
    assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, alive.address)
    message = run.trigger_message or ""
    before = [address for address in dead if address < alive.address]
    assert all(address in message for address in before)
    assert [asked.path for asked in alive.asked] == ["/beat", "/run"]


async def test_failover_without_anyone_alive_fails_with_every_answer(live: LiveAdmin) -> None:
    dead = [await register_dead(live, unused_port()) for _ in range(2)]
    run = await live.done(await live.trigger(await live.job(route_strategy="FAILOVER")))
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.FAILED, 500, 0)
    assert all(address in (run.trigger_message or "") for address in dead)


async def test_busyover_takes_the_first_that_is_idle(live: LiveAdmin) -> None:
    async with live.executor() as one, live.executor() as two:
        busy, idle = sorted((one, two), key=lambda executor: executor.address)
        busy.idle = False
        for executor in (busy, idle):
            await executor.register()
        job = await live.job(route_strategy="BUSYOVER")
        run = await live.done(await live.trigger(job))
        assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, idle.address)
        assert [(asked.path, asked.body) for asked in busy.asked] == [("/idleBeat", {"jobId": job.id})]
        idle.idle = False
        run = await live.done(await live.trigger(job))
    assert run.outcome is Outcome.FAILED
    assert all(executor.address in (run.trigger_message or "") for executor in (busy, idle))


def then_stops(executor: RecordingExecutor) -> None:
    """It says yes, and refuses what comes next."""
    executor.answer = refuse(500, reason="stopping")


def then_goes(executor: RecordingExecutor) -> None:
    """It says yes, and is gone: connections are broken off, and refused from then on."""

    async def say_and_go(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        gone.append(asyncio.create_task(executor.disappear()))
        return executor.envelope()

    gone: list[asyncio.Task[None]] = []
    executor.ask = say_and_go


def paths(executor: RecordingExecutor) -> list[str]:
    return [asked.path for asked in executor.asked]


@pytest.mark.parametrize("then", [then_stops, then_goes])
@pytest.mark.parametrize(("strategy", "question"), [("FAILOVER", "/beat"), ("BUSYOVER", "/idleBeat")])
async def test_who_says_yes_and_then_does_not_take_the_run_is_passed_over(
    live: LiveAdmin, strategy: str, question: str, then: Callable[[RecordingExecutor], None]
) -> None:
    async with live.executors(4, INSTANCE) as (dead, fickle, taking, last):
        await dead.disappear()
        then(fickle)
        job = await live.job(route_strategy=strategy)
        # Who made its times anew would make other ones.
        late = await live.late_run(job)
        run = await live.done(late.id)
        assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, taking.address)
        refused = ["/run"] if then is then_stops else []
        assert [paths(each) for each in (dead, fickle, taking, last)] == [[], [question, *refused], ["/run"], []]
        for asked in fickle.runs() + taking.runs():
            body = asked.body
            sent = (body["logId"], body["logDateTime"], body["scheduledTime"])
            assert sent == (late.id, late.triggered_ms, late.planned_ms)
    message = run.trigger_message or ""
    refusal = "takes no new runs" if then is then_stops else "unreachable"
    told = [f"{dead.address} unreachable", f"{fickle.address} {refusal}", f"{taking.address} accepted"]
    assert [each for each in told if each not in message] == [], message


@pytest.mark.parametrize("strategy", ["FAILOVER", "BUSYOVER"])
async def test_who_said_no_does_not_get_what_the_others_did_not_take(live: LiveAdmin, strategy: str) -> None:
    async with live.executors(2, INSTANCE) as (unwilling, fickle):
        unwilling.ask = refuse(500)
        then_stops(fickle)
        run = await live.done(await live.trigger(await live.job(route_strategy=strategy)))
        assert (unwilling.runs(), len(fickle.runs())) == ([], 1)
    assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
    assert "no address could be reached" in (run.trigger_message or "")


@pytest.mark.parametrize("strategy", ["FAILOVER", "BUSYOVER"])
async def test_questions_that_hang_hold_nobody_else_up(live: LiveAdmin, strategy: str) -> None:
    async with live.executor(app_name="slow") as hanging, live.executor(app_name="billing") as executor:
        await hanging.register()
        await executor.register()
        hanging.ask = never
        stuck, job = await live.job(app_name="slow", route_strategy=strategy), await live.job(app_name="billing")
        await write_due(live, stuck, 50)
        await until(lambda: live.admin.engine.collect().lanes[0].in_use >= 20)
        run = await live.done(await live.trigger(job))
        assert run.outcome is Outcome.SUCCEEDED
        # Nobody waited for the end of a question: none has come to its end.
        assert live.admin.engine.collect().lanes[0].in_use >= 20


@pytest.mark.timeout(40)
@pytest.mark.parametrize("strategy", ["FAILOVER", "BUSYOVER"])
async def test_not_even_a_great_many_questions_that_hang_do(tmp_path: Path, strategy: str) -> None:
    async with (
        live_admin(tmp_path / "data", wheel_capacity=1000, send_timeout_s=60.0) as live,
        live.executor(app_name="slow") as hanging,
        live.executor(app_name="billing") as executor,
    ):
        await hanging.register()
        await executor.register()
        go_on = asyncio.Event()

        async def hold(executor: RecordingExecutor, _: Asked) -> dict[str, Any]:
            await go_on.wait()
            return executor.envelope()

        hanging.ask = hold
        stuck, job = await live.job(app_name="slow", route_strategy=strategy), await live.job(app_name="billing")
        await write_due(live, stuck, 3000)
        await until(lambda: live.admin.engine.launcher.put_off_jobs() == [stuck.id])
        for _ in range(5):
            # Within the time that it is waited for: long before a question comes to its end.
            run = await live.done(await live.trigger(job))
            assert run.outcome is Outcome.SUCCEEDED
        assert live.admin.engine.collect().lanes[0].waiting <= 250
        # Once it answers again, all of them come to their turn.
        go_on.set()
        await until(lambda: len({run.log_id for run in hanging.runs()}) == 3000, 25)


@pytest.mark.parametrize("strategy", ["FAILOVER", "BUSYOVER"])
async def test_what_is_being_asked_is_not_asked_by_the_next_run_as_well(live: LiveAdmin, strategy: str) -> None:
    go_on = asyncio.Event()

    async def slowly(executor: RecordingExecutor, _: Asked) -> dict[str, Any]:
        await go_on.wait()
        return executor.envelope()

    async with live.executor() as executor:
        await executor.register()
        executor.ask = slowly
        job = await live.job(route_strategy=strategy)
        run_ids = [await live.trigger(job) for _ in range(20)]
        await until(lambda: live.admin.engine.collect().lanes[0].in_use == 20)
        go_on.set()
        for run_id in run_ids:
            assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
        assert len([asked for asked in executor.asked if asked.path != "/run"]) == 1


async def test_a_question_has_its_place_among_the_requests_to_an_address(tmp_path: Path) -> None:
    """Runs and questions had a limit each, so that an executor got twice as many requests at once."""
    release = asyncio.Event()

    async def slow(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        await release.wait()
        return await accept(executor, asked)

    async with (
        live_admin(tmp_path / "data", address_limit=1, send_timeout_s=20.0) as live,
        live.executor(slow) as executor,
    ):
        await executor.register()
        sent = await live.trigger(await live.job())
        await until(lambda: len(executor.runs()) == 1)
        asked_for = await live.trigger(await live.job(route_strategy="BUSYOVER"))
        launcher = live.admin.engine.launcher
        await until(lambda: launcher.lanes[0].in_use == 2)
        # A question on the wire would be there before the answer to another one.
        await live.admin.services.probes.probe(await live.group_id(), executor.address)
        assert [asked.path for asked in executor.asked] == ["/run", "/beat"]
        release.set()
        assert {(await live.done(run_id)).outcome for run_id in (sent, asked_for)} == {Outcome.SUCCEEDED}


async def test_a_stop_in_the_middle_of_a_question_leaves_the_run_pending(live: LiveAdmin) -> None:
    async with live.executor(hang) as executor:
        await executor.register()
        asked = asyncio.Event()

        async def note_and_hang(executor: RecordingExecutor, question: Asked) -> dict[str, Any]:
            asked.set()
            return await never(executor, question)

        executor.ask = note_and_hang
        run_id = await live.trigger(await live.job(route_strategy="FAILOVER"))
        await asyncio.wait_for(asked.wait(), 5)
        await live.admin.engine.launcher.stop()
        assert (await live.run(run_id)).phase == "pending"
