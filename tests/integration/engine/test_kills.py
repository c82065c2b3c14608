"""Runs that somebody wants to end: unsent, at their executors, and where nobody answers."""

import asyncio
from typing import Any

import pytest

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase, Run
from jobwheel.admin.engine.rules import KILL_END_MS
from jobwheel.admin.services.errors import KillsWholeJobError, NotFoundError, RunEndedError
from jobwheel.admin.store.runs import insert_runs
from tests.support.live_admin import LiveAdmin, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, take_and_cut
from tests.support.recoveries import look_now
from tests.support.store import new_run

OURS: dict[str, Any] = {
    "instance": INSTANCE,
    "features": {"killByLog": True},
    "kills": True,
    "state": "running",
    "reports": False,
}
HOUR_MS = 3_600_000


async def taken(live: LiveAdmin, executor: RecordingExecutor, job: Job | None = None) -> RunId:
    """A run that the executor took and gives no result of."""
    await executor.register()
    run_id = await live.trigger(job or await live.job())
    await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
    return run_id


async def kill(live: LiveAdmin, run_id: RunId, *, by_job: bool = False) -> Run:
    return await live.admin.services.kills.kill_run(run_id, by_job=by_job, actor="ada")


def told(executor: RecordingExecutor) -> list[dict[str, Any]]:
    return [each.body for each in executor.asked if each.path == "/kill"]


async def pending(live: LiveAdmin, job: Job) -> RunId:
    """A run of the job that is due in an hour."""
    now_ms = live.admin.database.clock.now()
    new = new_run(live.admin.engine.node_id, now_ms + HOUR_MS, job_id=job.id, group_id=job.settings.group_id)
    (run,) = await live.admin.database.write(insert_runs, live.admin.installation.zone, [new])
    live.admin.engine.fly([run])
    return run.id


async def test_a_pending_run_is_killed_at_once_and_never_sent(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        await executor.register()
        job = await live.job()
        run_id = await pending(live, job)
        run = await kill(live, run_id)
        assert (run.phase, run.outcome, run.trigger_code, run.handle_code) == (None, Outcome.KILLED, 0, 500)
        assert run.trigger_message == "kill: ada wants this run to end\n"
        assert run.handle_message == "killed before it was sent"
        assert "run.kill_asked" in await live.event_kinds(job)
        assert (executor.runs(), told(executor)) == ([], [])


async def test_an_executor_of_ours_is_told_to_end_that_run_alone_and_its_result_ends_it(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        run = await kill(live, run_id)
        assert (run.phase, run.kill_ms is not None) == (Phase.ACCEPTED, True)
        run = await live.run_when(run_id, lambda run: "was told (code 200)" in (run.trigger_message or ""))
        assert told(executor) == [{"jobId": run.job_id, "logId": run_id}]
        await executor.report(run_id, 500, "killed")
        run = await live.run(run_id)
        assert (run.phase, run.trigger_code, run.handle_code, run.handle_message) == (None, 200, 500, "killed")


async def test_a_kill_that_is_asked_for_twice_is_one(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        await executor.register()
        job = await live.job()
        run_id = await taken(live, executor, job)
        first = await kill(live, run_id)
        await live.run_when(run_id, lambda run: "was told" in (run.trigger_message or ""))
        assert (await kill(live, run_id)).kill_ms == first.kill_ms
        assert (await live.event_kinds(job)).count("run.kill_asked") == 1


async def test_without_a_result_for_a_minute_the_run_is_killed_by_any_node(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        await kill(live, run_id)
        await until(lambda: len(told(executor)) == 1)
        now_ms = live.admin.database.now_ms()
        await look_now(live, run_id)
        await until(lambda: len(told(executor)) == 2)
        await live.change_run(run_id, kill_ms=now_ms - KILL_END_MS)
        await look_now(live, run_id)
        run = await live.done(run_id)
        assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.KILLED, 200, 500)
        assert run.handle_message == (
            f"killed: {executor.address} gave no result within 60 s after it was to end the run"
        )
        await executor.report(run_id)
        assert (await live.run(run_id)).outcome is Outcome.KILLED


async def test_an_executor_that_does_not_answer_is_told_again(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        run_id = await taken(live, executor)
        # It does not know /kill, as one that starts, or a proxy before it.
        executor.kills = False
        await kill(live, run_id)
        await until(lambda: len(told(executor)) == 1)
        run = await live.run(run_id)
        assert "was told" not in (run.trigger_message or "")
        executor.kills = True
        await look_now(live, run_id)
        await live.run_when(run_id, lambda run: "was told" in (run.trigger_message or ""))


async def test_an_executor_that_can_only_end_the_whole_job_needs_a_yes(live: LiveAdmin) -> None:
    async with live.executor(kills=True, reports=False) as executor:
        await executor.register()
        job = await live.job()
        run_id = await taken(live, executor, job)
        with pytest.raises(KillsWholeJobError, match=r"every run of job .* by_job=true"):
            await kill(live, run_id)
        untouched = await live.run(run_id)
        assert (untouched.phase, untouched.kill_ms) == (Phase.ACCEPTED, None)
        assert "run.kill_asked" not in await live.event_kinds(job)
        await kill(live, run_id, by_job=True)
        await live.run_when(run_id, lambda run: "was told" in (run.trigger_message or ""))
        assert told(executor) == [{"jobId": job.id}]


async def test_one_of_ours_that_says_it_cannot_end_one_run_needs_a_yes(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "features": {}}) as executor:
        run_id = await taken(live, executor)
        with pytest.raises(KillsWholeJobError):
            await kill(live, run_id)


async def test_a_finished_run_is_not_killed(live: LiveAdmin) -> None:
    async with live.executor(**{**OURS, "reports": True}) as executor:
        await executor.register()
        job = await live.job()
        run_id = await live.trigger(job)
        before = await live.done(run_id)
        with pytest.raises(RunEndedError, match="succeeded"):
            await kill(live, run_id)
        assert await live.run(run_id) == before
        assert told(executor) == []
        await live.change_run(run_id, outcome=None, handle_code=0)
        with pytest.raises(RunEndedError, match="another admin"):
            await kill(live, run_id)
    with pytest.raises(NotFoundError):
        await kill(live, RunId(999_999))


async def test_an_unconfirmed_run_is_killed_and_sent_no_more(live: LiveAdmin) -> None:
    async with live.executor(take_and_cut, **OURS) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
        await kill(live, run_id)
        await until(lambda: len(told(executor)) == 1)
        await look_now(live, run_id)
        await until(lambda: len(told(executor)) == 2)
        assert len(executor.runs()) == 1
        await live.change_run(run_id, kill_ms=live.admin.database.now_ms() - KILL_END_MS)
        await look_now(live, run_id)
        run = await live.done(run_id)
        assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.KILLED, 200, 500)


async def test_a_run_that_is_being_sent_is_killed_after_the_answer(live: LiveAdmin) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def wait(executor: RecordingExecutor, request: Asked) -> dict[str, Any]:
        asked.set()
        await answer.wait()
        executor.start(request)
        return executor.envelope()

    async with live.executor(wait, **OURS) as executor:
        await executor.register()
        run_id = await live.trigger(await live.job())
        await asked.wait()
        assert (await kill(live, run_id)).phase is Phase.SENDING
        assert told(executor) == []
        answer.set()
        await live.run_when(run_id, lambda run: "was told" in (run.trigger_message or ""))
        assert told(executor)[0]["logId"] == run_id


async def test_a_run_that_is_being_sent_to_nobody_goes_to_no_next_address(live: LiveAdmin) -> None:
    asked, answer = asyncio.Event(), asyncio.Event()

    async def stop(executor: RecordingExecutor, _: Asked) -> dict[str, Any]:
        asked.set()
        await answer.wait()
        return executor.envelope(500, reason="stopping")

    async with live.executor(stop, **OURS) as leaver, live.executor(stop, **OURS) as other:
        await leaver.register()
        await other.register()
        run_id = await live.trigger(await live.job())
        await asked.wait()
        await kill(live, run_id)
        answer.set()
        run = await live.done(run_id)
        assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.KILLED, 0, 500)
        assert len(leaver.runs()) + len(other.runs()) == 1


async def test_all_open_runs_of_a_job_are_killed_and_no_others(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        await executor.register()
        job, other_job = await live.job(), await live.job(name="other")
        flying = [await taken(live, executor, job) for _ in range(2)]
        waiting, other = await pending(live, job), await pending(live, other_job)
        kills = live.admin.services.kills
        assert await kills.kill_job_runs(job.id, by_job=False, actor="ada") == 3
        assert (await live.run(waiting)).outcome is Outcome.KILLED
        assert (await live.run(other)).kill_ms is None
        await until(lambda: {each["logId"] for each in told(executor)} == set(flying))
        assert await kills.kill_job_runs(job.id, by_job=False, actor="ada") == 0
        assert await kills.kill_job_runs(other_job.id, by_job=False, actor="ada") == 1
        with pytest.raises(NotFoundError):
            await kills.kill_job_runs(type(job.id)(999_999), by_job=False, actor="ada")


async def test_without_a_yes_no_run_of_a_job_is_killed_if_one_cannot_be_alone(live: LiveAdmin) -> None:
    async with live.executor(kills=True, reports=False) as executor:
        await executor.register()
        job = await live.job()
        flying = [await taken(live, executor, job) for _ in range(2)]
        waiting = await pending(live, job)
        kills = live.admin.services.kills
        with pytest.raises(KillsWholeJobError):
            await kills.kill_job_runs(job.id, by_job=False, actor="ada")
        assert (await live.run(waiting)).phase is Phase.PENDING
        assert await kills.kill_job_runs(job.id, by_job=True, actor="ada") == 3
        for run_id in flying:
            await live.run_when(run_id, lambda run: "was told" in (run.trigger_message or ""))
        # Both runs are ended by one word.
        assert told(executor) == [{"jobId": job.id}]


async def test_a_killed_run_gives_its_room_on_and_one_that_waits_is_killed(live: LiveAdmin) -> None:
    async with live.executor(**OURS) as executor:
        await executor.register()
        job = await live.job(run_limit=1)
        flying = await taken(live, executor, job)
        first, second = await live.trigger(job), await live.trigger(job)
        assert (await kill(live, first)).outcome is Outcome.KILLED
        await kill(live, flying)
        await until(lambda: len(told(executor)) == 1)
        await executor.report(flying, 500, "killed")
        await live.run_when(second, lambda run: run.phase is Phase.ACCEPTED)
        assert [asked.log_id for asked in executor.runs()] == [flying, second]
