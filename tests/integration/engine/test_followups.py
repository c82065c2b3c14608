"""What follows a run, from the callback to the next request: retries, children, and what children are told."""

import pytest
from sqlalchemy import select

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Phase, Run, TriggerType
from jobwheel.admin.store.tables import job_log
from tests.support.live_admin import CLOCK, LiveAdmin, seen, until
from tests.support.recording_executor import INSTANCE, accept, cut, refuse, take_and_cut
from tests.support.recoveries import look_now, may_not_judge

PARENT_MESSAGE = 'rows: 7\n→ "día" \x1b'


async def all_runs(live: LiveAdmin, job: Job, count: int) -> list[Run]:
    """The job's runs, oldest first, once there are so many and all have ended."""

    async def look() -> list[Run] | None:
        found = await live.runs(job)
        return found if len(found) == count and all(run.phase is None for run in found) else None

    return await seen(look)


async def test_a_run_that_is_refused_is_tried_again_at_once_and_no_more_than_the_job_says(live: LiveAdmin) -> None:
    async with live.executor(refuse(500, msg="not today")) as executor:
        await executor.register()
        job = await live.job(retry_count=2)
        await live.trigger(job)
        runs = await all_runs(live, job, 3)
        assert [asked.log_id for asked in executor.runs()] == [run.id for run in runs]
    assert [run.trigger_type for run in runs] == [TriggerType.MANUAL, TriggerType.RETRY, TriggerType.RETRY]
    assert [run.attempt for run in runs] == [1, 2, 3]
    assert {run.planned_ms for run in runs} == {runs[0].planned_ms}
    assert [f"retries left: {left}" in (run.trigger_message or "") for left, run in zip((2, 1, 0), runs, strict=True)]
    assert (runs[0].trigger_message or "").endswith(f"→ tried again at once: run {runs[1].id}\n")


async def test_a_retry_waits_in_the_database_until_it_is_due(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE, reports=False) as executor:
        await executor.register()
        job = await live.job(retry_count=1, retry_interval_s=3600)
        run_id = await live.trigger(job)
        await until(lambda: len(executor.runs()) == 1)
        await executor.report(run_id, 500, "no such file")
        first, retry = await live.runs(job)
        assert (first.outcome, retry.phase) == (Outcome.FAILED, Phase.PENDING)
        assert 3_590_000 < (retry.due_ms or 0) - CLOCK.now() <= 3_600_000
        assert len(live.admin.engine.wheel) == 0
        await live.change_run(retry.id, due_ms=CLOCK.now())
        await until(lambda: len(executor.runs()) == 2)
        body = executor.runs()[1].body
    assert (body["logId"], body["attempt"], body["triggerType"]) == (retry.id, 2, "RETRY")
    assert body["scheduledTime"] == first.planned_ms
    assert body["logDateTime"] == retry.triggered_ms


@pytest.mark.parametrize("instance", [INSTANCE, None], ids=["ours", "others"])
async def test_a_child_is_told_its_parent_by_executors_of_ours_alone(live: LiveAdmin, instance: str | None) -> None:
    async with live.executor(instance=instance, reports=False) as executor:
        await executor.register()
        child = await live.job(parameter="child")
        job = await live.job(child_job_ids=[child.id])
        run_id = await live.trigger(job)
        await until(lambda: len(executor.runs()) == 1)
        await executor.report(run_id, 200, PARENT_MESSAGE)
        await until(lambda: len(executor.runs()) == 2)
        parent, made = [asked.body for asked in executor.runs()]
    assert (made["jobId"], made["executorParams"]) == (child.id, "child")
    assert "parent" not in parent
    if instance is None:
        assert "parent" not in made
    else:
        assert made["parent"] == {"logId": run_id, "handleMsg": PARENT_MESSAGE}


async def test_a_child_that_is_sent_again_is_told_its_parent_again(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE, reports=False) as executor:
        await executor.register()
        child = await live.job()
        run_id = await live.trigger(await live.job(child_job_ids=[child.id]))
        await until(lambda: len(executor.runs()) == 1)
        executor.answer = cut
        await executor.report(run_id, 200, "rows: 7")
        (made,) = await live.runs(child)
        await live.run_when(made.id, lambda run: run.phase is Phase.UNCONFIRMED)
        await look_now(live, made.id)
        await until(lambda: len(executor.runs()) == 3)
        bodies = [asked.body for asked in executor.runs()[1:]]
    assert [body["logId"] for body in bodies] == [made.id] * 2
    assert [body["parent"] for body in bodies] == [{"logId": run_id, "handleMsg": "rows: 7"}] * 2
    assert bodies[1]["resend"] is True


async def test_the_shards_of_a_child_are_told_its_parent(live: LiveAdmin) -> None:
    async with live.executors(2, INSTANCE) as group:
        child = await live.job(route_strategy="SHARDING_BROADCAST")
        run_id = await live.trigger(await live.job(child_job_ids=[child.id]))
        shards = await all_runs(live, child, 2)
        told = [asked.body for each in group for asked in each.runs() if asked.body["jobId"] == child.id]
    assert {run.parent_run_id for run in shards} == {run_id}
    assert [body["parent"]["logId"] for body in told] == [run_id] * 2


async def test_a_shard_is_tried_again_at_its_address_and_else_at_a_live_one(live: LiveAdmin) -> None:
    async with live.executors(3) as group:
        bad = group[1]
        bad.answer = refuse(500, msg="not today")
        child = await live.job()
        job = await live.job(route_strategy="SHARDING_BROADCAST", retry_count=1, child_job_ids=[child.id])
        await live.trigger(job)
        runs = await all_runs(live, job, 4)
        assert [(str(run.shard), run.executor_address) for run in runs[1::2]] == [("1/3", bad.address)] * 2
        assert await live.runs(child) == []
        bad.answer = cut
        await bad.leave()
        await bad.disappear()
        group.pop(1)
        await live.trigger(job)
        runs = await all_runs(live, job, 6)
        assert [str(run.shard) for run in runs[4:]] == ["0/2", "1/2"]
        (made,) = await all_runs(live, child, 1)
    assert made.outcome is Outcome.SUCCEEDED


async def test_a_failed_shard_whose_executor_is_gone_is_tried_again_on_a_live_one(live: LiveAdmin) -> None:
    async with live.executors(2) as group:
        gone = group[1]
        await gone.disappear()
        job = await live.job(route_strategy="SHARDING_BROADCAST", retry_count=1)
        await live.trigger(job)
        runs = await all_runs(live, job, 3)
    assert [(str(run.shard), run.outcome) for run in runs] == [
        ("0/2", Outcome.SUCCEEDED),
        ("1/2", Outcome.FAILED),
        ("1/2", Outcome.SUCCEEDED),
    ]
    assert (runs[1].executor_address, runs[2].executor_address) == (gone.address, group[0].address)


async def test_a_broadcast_to_nobody_is_tried_again_as_a_whole(live: LiveAdmin) -> None:
    async with live.executors(2) as group:
        for each in group:
            await each.leave()
        child = await live.job()
        job = await live.job(
            route_strategy="SHARDING_BROADCAST", retry_count=2, retry_interval_s=3600, child_job_ids=[child.id]
        )
        first = await live.done(await live.trigger(job))
        for each in group:
            await each.register()
        await live.change_run((await live.runs(job))[1].id, due_ms=CLOCK.now())
        runs = await all_runs(live, job, 3)
        await all_runs(live, child, 1)
    assert first.outcome is Outcome.FAILED
    assert [(str(run.shard), run.attempt, run.outcome) for run in runs[1:]] == [
        ("0/2", 2, Outcome.SUCCEEDED),
        ("1/2", 2, Outcome.SUCCEEDED),
    ]


async def unconfirmed(live: LiveAdmin) -> RunId:
    """A run that gave no answer, of a job whose runs are sent again."""
    run_id = await live.trigger(await live.job(uncertain_send="SEND_AGAIN"))
    await live.run_when(run_id, lambda run: run.phase is Phase.UNCONFIRMED)
    return run_id


async def test_a_job_may_choose_that_others_are_sent_its_runs_again(live: LiveAdmin) -> None:
    async with live.executor(cut) as executor:
        await executor.register()
        run_id = await unconfirmed(live)
        run = await live.admin.database.read(
            lambda c: c.exec_driver_sql(
                "SELECT check_ms - unheard_ms FROM xxl_job_log WHERE id = ?", (run_id,)
            ).scalar()
        )
        assert run == 10_000
        await look_now(live, run_id, 10_000)
        await until(lambda: len(executor.runs()) == 2)
        executor.answer = accept
        await look_now(live, run_id, 30_000)
        await until(lambda: len(executor.runs()) == 3)
        done = await live.done(run_id)
        bodies = [asked.body for asked in executor.runs()]
    assert done.outcome is Outcome.SUCCEEDED
    assert bodies[0] == bodies[1] == bodies[2]


async def test_a_node_that_has_just_come_sends_again_at_the_same_times(live: LiveAdmin) -> None:
    """It must not lose a run by a silence in which it was not there; but to wait for two minutes helps nobody."""
    async with live.executor(cut) as executor:
        await executor.register()
        run_id = await unconfirmed(live)
        may_not_judge(live)
        now_ms = live.admin.database.now_ms()
        executor.answer = accept
        await live.change_run(run_id, check_ms=now_ms, unheard_ms=now_ms - 10_000)
        live.admin.engine._recovering.wake()
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
    assert len(executor.runs()) == 2


async def next_look_ms(live: LiveAdmin, run_id: RunId) -> int:
    look = select(job_log.c.check_ms).where(job_log.c.id == run_id)
    return await live.admin.database.read(lambda c: c.execute(look).scalar_one()) or 0


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("repeate trigger job, logId:7", Phase.ACCEPTED),
        ("block strategy effect：Discard Later", Phase.UNCONFIRMED),  # noqa: RUF001 - as executors write it
    ],
)
async def test_a_refusal_may_mean_that_it_has_arrived(live: LiveAdmin, message: str, phase: Phase) -> None:
    async with live.executor(take_and_cut, reports=False) as executor:
        await executor.register()
        run_id = await unconfirmed(live)
        executor.answer = refuse(500, msg=message)
        await look_now(live, run_id, 10_000)
        await until(lambda: len(executor.runs()) == 2)
        await live.run_when(run_id, lambda run: run.phase is phase)
        assert await next_look_ms(live, run_id) > live.admin.database.now_ms()
        await executor.report(run_id)
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED


async def test_what_is_sent_again_in_vain_for_five_minutes_is_lost(live: LiveAdmin) -> None:
    async with live.executor(cut) as executor:
        await executor.register()
        run_id = await unconfirmed(live)
        await look_now(live, run_id, 300_000)
        run = await live.done(run_id)
    assert (run.outcome, len(executor.runs())) == (Outcome.LOST, 1)
    assert "not confirmed: no answer for 5 minutes" in (run.trigger_message or "")
