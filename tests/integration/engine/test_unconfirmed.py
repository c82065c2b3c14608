"""Runs that may or may not have arrived: sent again to executors of ours, asked about at others, never run twice."""

import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import Outcome, Phase, Run
from tests.support.live_admin import LiveAdmin, until
from tests.support.recording_executor import INSTANCE, RecordingExecutor, cut, hang, refuse, take_and_cut
from tests.support.recoveries import look_now

LONG_AGO_MS = 5 * 60_000


async def unconfirmed(live: LiveAdmin, executor: RecordingExecutor) -> RunId:
    """A run of the executor that gave no answer."""
    await executor.register()
    run_id = await live.trigger(await live.job())
    await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
    return run_id


@pytest.mark.parametrize(("answer", "send_timeout_s"), [(take_and_cut, 20.0), (hang, 1.0)], ids=["cut", "silent"])
async def test_a_run_that_was_taken_is_sent_again_and_executed_once(live: LiveAdmin, answer: object) -> None:
    async with live.executor(answer, instance=INSTANCE, reports=False) as executor:  # type: ignore[arg-type]
        run_id = await unconfirmed(live, executor)
        executor.answer = take_and_cut
        await look_now(live, run_id)
        run = await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
        first, again = executor.runs()
        assert len(executor.started) == 1
        await executor.report(run_id)
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
    assert "sent again" in (run.trigger_message or "")
    assert "resend" not in first.body
    assert (again.body["resend"], again.body["instance"]) == (True, INSTANCE)
    for name in ("logId", "logDateTime", "scheduledTime", "executorParams", "executorHandler", "attempt"):
        assert first.body[name] == again.body[name]


async def test_a_run_that_never_arrived_is_taken_when_it_is_sent_again(live: LiveAdmin) -> None:
    async with live.executor(cut, instance=INSTANCE) as executor:
        run_id = await unconfirmed(live, executor)
        assert executor.started == {}
        await look_now(live, run_id)
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
        assert list(executor.started) == [run_id]


async def test_another_process_at_the_address_loses_the_run_and_a_late_result_finds_it(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, instance=INSTANCE, reports=False) as executor:
        run_id = await unconfirmed(live, executor)
        executor.answer = refuse(500, reason="instance", msg="another process")
        await look_now(live, run_id)
        lost = await live.done(run_id)
        assert (lost.outcome, lost.trigger_code, lost.handle_code) == (Outcome.LOST, 500, 0)
        assert "another process" in (lost.trigger_message or "")
        await executor.report(run_id)
        run = await live.run(run_id)
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.SUCCEEDED, 200, 200)


async def test_a_refusal_by_a_stranger_says_nothing_of_the_run(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, instance=INSTANCE, reports=False) as executor:
        run_id = await unconfirmed(live, executor)
        # Another make of executor has the address now, and refuses in its own way.
        executor.instance = None
        executor.answer = refuse(500, msg="job handler [settle] not found.")
        await look_now(live, run_id)
        assert (await live.done(run_id)).outcome is Outcome.LOST
        await executor.report(run_id)
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED


async def test_a_run_with_an_address_named_by_hand_goes_to_no_other_when_it_is_sent_again(live: LiveAdmin) -> None:
    async with live.executor(cut, instance=INSTANCE) as leaver, live.executor() as other:
        await leaver.register()
        await other.register()
        run_id = await live.trigger(await live.job(), leaver.address)
        await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
        leaver.answer = refuse(500, reason="stopping", msg="this executor is stopping")
        await look_now(live, run_id)
        assert (await live.done(run_id)).outcome is Outcome.FAILED
        assert other.runs() == []


async def test_a_refusal_of_the_resend_is_the_runs_end(live: LiveAdmin) -> None:
    async with live.executor(cut, instance=INSTANCE) as executor:
        run_id = await unconfirmed(live, executor)
        executor.answer = refuse(500, reason="full", msg="the queue is full")
        await look_now(live, run_id)
        assert (await live.done(run_id)).outcome is Outcome.DISCARDED


async def test_a_resend_to_an_executor_that_is_stopping_goes_to_the_next(live: LiveAdmin) -> None:
    async with live.executor(cut, instance=INSTANCE) as leaver, live.executor() as other:
        run_id = await unconfirmed(live, leaver)
        leaver.answer = refuse(500, reason="stopping", msg="this executor is stopping")
        await other.register()
        await look_now(live, run_id)
        run = await live.done(run_id)
        assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, other.address)
        assert (leaver.started, list(other.started)) == ({}, [run_id])
        assert "resend" not in other.runs()[0].body


async def test_a_resend_to_a_stopping_executor_without_another_fails(live: LiveAdmin) -> None:
    async with live.executor(cut, instance=INSTANCE) as leaver:
        run_id = await unconfirmed(live, leaver)
        leaver.answer = refuse(500, reason="stopping", msg="this executor is stopping")
        await look_now(live, run_id)
        run = await live.done(run_id)
    assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)


async def test_without_an_answer_for_five_minutes_a_run_of_ours_is_lost(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, instance=INSTANCE, reports=False) as executor:
        run_id = await unconfirmed(live, executor)
        await executor.disappear()
        await look_now(live, run_id, LONG_AGO_MS - 20_000)
        run = await live.run(run_id)
        assert run.phase is Phase.UNCONFIRMED
        await look_now(live, run_id, LONG_AGO_MS)
        lost = await live.done(run_id)
    assert lost.outcome is Outcome.LOST
    assert "not confirmed" in (lost.trigger_message or "")


async def _ask(live: LiveAdmin, executor: RecordingExecutor, run_id: RunId, idle: bool) -> Run:
    """Have the executor asked once, and return the run after its answer was noted."""
    executor.idle = idle
    count = sum(asked.path == "/idleBeat" for asked in executor.asked)
    await look_now(live, run_id)
    await until(lambda: sum(asked.path == "/idleBeat" for asked in executor.asked) > count)
    return await live.run(run_id)


async def _idle_answers(live: LiveAdmin, run_id: RunId) -> int:
    query = "SELECT idle_answers FROM xxl_job_log WHERE id = ?"
    return int(await live.admin.database.read(lambda c: c.exec_driver_sql(query, (run_id,)).scalar_one()))


async def _wait_idle_answers(live: LiveAdmin, run_id: RunId, count: int) -> None:
    while await _idle_answers(live, run_id) != count:
        await live.admin.database.clock.wait(0.01)


async def test_another_make_of_executor_is_asked_and_never_sent_the_run_again(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, reports=False) as executor:
        run_id = await unconfirmed(live, executor)
        for idle, count in ((True, 1), (True, 2), (False, 0), (True, 1), (True, 2)):
            await _ask(live, executor, run_id, idle)
            await _wait_idle_answers(live, run_id, count)
            assert (await live.run(run_id)).phase is Phase.UNCONFIRMED
        await _ask(live, executor, run_id, idle=True)
        lost = await live.done(run_id)
        assert len(executor.runs()) == 1
        job_id = (await live.run(run_id)).job_id
        assert {asked.body["jobId"] for asked in executor.asked if asked.path == "/idleBeat"} == {job_id}
        await executor.report(run_id)
        assert (await live.run(run_id)).outcome is Outcome.SUCCEEDED
    assert lost.outcome is Outcome.LOST
    assert "idle 3 times running" in (lost.trigger_message or "")


async def test_nothing_readable_for_ten_minutes_loses_the_run_of_another_make(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, reports=False) as executor:
        run_id = await unconfirmed(live, executor)
        await executor.disappear()
        await look_now(live, run_id, 2 * LONG_AGO_MS)
        lost = await live.done(run_id)
    assert lost.outcome is Outcome.LOST
    assert "10 minutes" in (lost.trigger_message or "")


async def test_a_run_stuck_in_sending_is_found(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.done(run_id)
        executor.started.clear()
        node_id, now_ms = live.admin.engine.node_id, live.admin.database.now_ms()
        stuck = {"phase": "sending", "outcome": None, "trigger_code": 0, "handle_code": 0, "owner": node_id}
        await live.change_run(run_id, sent_ms=now_ms - 60_000, **stuck)
        run = await live.done(run_id)
        assert "its sending was broken off" in (run.trigger_message or "")
        assert run.outcome is Outcome.SUCCEEDED


async def test_a_run_stuck_on_its_way_to_nowhere_has_its_turn_again(live: LiveAdmin) -> None:
    async with live.executor() as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.done(run_id)
        executor.started.clear()
        node_id, long_ago_ms = live.admin.engine.node_id, live.admin.database.now_ms() - LONG_AGO_MS
        # As a take-off for want of an address leaves it, if the database refuses what was to be said of it.
        stuck = {"phase": "sending", "outcome": None, "trigger_code": 0, "handle_code": 0, "owner": node_id}
        await live.change_run(run_id, sent_ms=long_ago_ms, executor_address="", **stuck)
        run = await live.done(run_id)
        assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, executor.address)
        assert "broken off" not in (run.trigger_message or "")
        assert [asked.log_id for asked in executor.runs()] == [run_id, run_id]
