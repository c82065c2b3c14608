"""The cluster-wide limit of a job: never more runs under way than it allows; the rest wait, or are discarded."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import update

from jobwheel.admin.domain.run import Outcome, Phase, Shard
from jobwheel.admin.store import Connection, runs
from jobwheel.admin.store.tables import job_log
from tests.support.live_admin import CLOCK, LiveAdmin, seen, until
from tests.support.recording_executor import Asked, RecordingExecutor
from tests.support.store import new_run


async def take_and_wait(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
    """Accept a run, whose result somebody else reports."""
    executor.start(asked)
    return executor.envelope()


async def started(executor: RecordingExecutor, count: int) -> None:
    """Return once so many runs have come."""
    await until(lambda: len(executor.runs()) == count)


async def test_runs_over_the_limit_wait_for_one_to_end_the_oldest_first(live: LiveAdmin) -> None:
    async with live.executor(take_and_wait, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=2)
        run_ids = [await live.trigger(job) for _ in range(6)]
        for ended in range(4):
            await started(executor, ended + 2)
            assert sorted(executor.started) == run_ids[: ended + 2]
            await executor.report(run_ids[ended])
            assert (await live.done(run_ids[ended])).outcome is Outcome.SUCCEEDED
        await executor.report(run_ids[4])
        await executor.report(run_ids[5])
        assert [run.outcome for run in await live.runs(job)][:4] == [Outcome.SUCCEEDED] * 4


async def test_runs_over_the_limit_are_discarded_where_the_job_says_so(live: LiveAdmin) -> None:
    async with live.executor(take_and_wait, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=1, run_limit_overflow="DISCARD")
        first = await live.trigger(job)
        await until(lambda: len(executor.runs()) == 1)
        second = await live.done(await live.trigger(job))
        assert second.outcome is Outcome.DISCARDED
        assert (second.trigger_code, second.handle_code) == (500, 0)
        assert "1 runs of the job are under way" in (second.trigger_message or "")
        await executor.report(first)
        third = await live.trigger(job)
        await until(lambda: len(executor.runs()) == 2)
        await executor.report(third)


async def test_a_discarded_run_is_done_with_its_take_off(live: LiveAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    async with live.executor(take_and_wait, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=1, run_limit_overflow="DISCARD")
        first = await live.trigger(job)
        await live.run_when(first, lambda run: run.phase is Phase.ACCEPTED)
        # As if the process died after the commit.
        monkeypatch.setattr(live.admin.engine.writer, "add", lambda write: None)
        discarded = await live.done(await live.trigger(job))
        assert discarded.outcome is Outcome.DISCARDED
        assert (discarded.executor_address, discarded.handler) == (executor.address, "settle")
        assert discarded.sent_ms == discarded.ended_ms
        assert (discarded.trigger_message or "").startswith("type: MANUAL\n")
        await until(lambda: live.admin.engine.collect().outcomes.get(Outcome.DISCARDED) == 1)
        await until(lambda: not live.admin.engine.wheel.holds(discarded.id))
        assert [asked.log_id for asked in executor.runs()] == [first]


async def test_a_discarded_broadcast_makes_no_shards_and_keeps_no_slot(live: LiveAdmin) -> None:
    async with live.executors(2, answer=take_and_wait, reports=False) as (one, two):
        job = await live.job(run_limit=1, run_limit_overflow="DISCARD", route_strategy="SHARDING_BROADCAST")
        await live.trigger(job)
        await until(lambda: len(one.runs()) == len(two.runs()) == 1)
        discarded = await live.done(await live.trigger(job))
        assert (discarded.outcome, discarded.shard) == (Outcome.DISCARDED, None)
        assert len(await live.runs(job)) == 3
        await until(lambda: not live.admin.engine.launcher._slots._addresses)


async def test_a_raised_limit_calls_those_that_wait(live: LiveAdmin) -> None:
    async with live.executor(take_and_wait, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=1)
        for _ in range(4):
            await live.trigger(job)
        await until(lambda: len(executor.runs()) == 1)
        await live.admin.services.jobs.update(job.id, {"run_limit": 3}, version=None, actor="test")
        await until(lambda: len(executor.runs()) == 3)
        await live.admin.services.jobs.update(job.id, {"run_limit": None}, version=None, actor="test")
        await until(lambda: len(executor.runs()) == 4)


async def test_a_broadcast_counts_as_one(live: LiveAdmin) -> None:
    async with live.executors(2, answer=take_and_wait, reports=False) as (one, two):
        job = await live.job(run_limit=2, route_strategy="SHARDING_BROADCAST")
        for _ in range(3):
            await live.trigger(job)
        await until(lambda: len(one.runs()) == len(two.runs()) == 2)

        async def third_waits() -> bool:
            return sum(run.phase is Phase.PENDING for run in await live.runs(job)) == 1

        await seen(third_waits)
        runs = await live.runs(job)
        for run in [run for run in runs if run.broadcast_id == runs[0].id]:
            assert len(one.runs()) == 2
            await one.report(run.id)
        await until(lambda: len(one.runs()) == len(two.runs()) == 3)


async def test_shards_that_a_stop_took_back_are_sent_together(live: LiveAdmin) -> None:
    async with live.executor(take_and_wait, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=1, route_strategy="SHARDING_BROADCAST")
        left = new_run(None, CLOCK.now(), job_id=job.id, group_id=job.settings.group_id)

        def leave_shards(connection: Connection) -> None:
            first = runs.insert_runs(connection, live.admin.installation.zone, [replace(left, shard=Shard(0, 2))])[0]
            connection.execute(update(job_log).where(job_log.c.id == first.id).values(broadcast_id=first.id))
            other = replace(left, shard=Shard(1, 2), broadcast_id=first.id)
            runs.insert_runs(connection, live.admin.installation.zone, [other])

        await live.admin.database.write(leave_shards)
        await until(lambda: len(executor.runs()) == 2)


@pytest.mark.timeout(30)
async def test_never_more_than_the_limit_under_load(live: LiveAdmin) -> None:
    under_way, most = 0, 0

    async def work(executor: RecordingExecutor, log_id: int) -> None:
        nonlocal under_way
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which others may start
        under_way -= 1
        await executor.report(log_id)

    async def answer(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        executor.spawn(work(executor, asked.log_id))
        return executor.envelope()

    async with live.executor(answer, reports=False) as executor:
        await executor.register()
        job = await live.job(run_limit=3)
        await asyncio.gather(*(live.trigger(job) for _ in range(60)))

        async def all_done() -> bool:
            return all(run.phase is None for run in await live.runs(job))

        await seen(all_done, 25)
        assert len({asked.log_id for asked in executor.runs()}) == len(executor.runs()) == 60
        assert most <= 3


@pytest.mark.parametrize("strategy", ["ROUND", "LEAST_FREQUENTLY_USED", "LEAST_RECENTLY_USED"])
async def test_runs_that_waited_for_room_are_spread_as_evenly_as_others(live: LiveAdmin, strategy: str) -> None:
    """Each was routed when it came and again when it was called: of two executors one got all runs."""
    reporting = asyncio.Semaphore(0)

    async def hold(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        executor.start(asked)
        reporting.release()
        return executor.envelope()

    async with live.executors(2, answer=hold, reports=False) as (first, second):
        job = await live.job(run_limit=1, route_strategy=strategy)
        run_ids = [await live.trigger(job) for _ in range(12)]
        for run_id in run_ids:
            async with asyncio.timeout(20):
                await reporting.acquire()
            await (first if run_id in first.started else second).report(run_id)
        assert {(await live.done(run_id)).outcome for run_id in run_ids} == {Outcome.SUCCEEDED}
    # A count starts at a random one.
    assert abs(len(first.started) - len(second.started)) <= 2


async def test_runs_beside_discarded_ones_are_spread_as_evenly(live: LiveAdmin) -> None:
    """Where every second run came too early, the turns of one executor were those that were discarded."""
    async with live.executors(2, answer=take_and_wait, reports=False) as (first, second):
        job = await live.job(run_limit=1, run_limit_overflow="DISCARD", route_strategy="ROUND")
        for count in range(1, 7):
            run_id = await live.trigger(job)
            await until(lambda: len(first.runs()) + len(second.runs()) == count)  # noqa: B023 - waited for right here
            await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
            assert (await live.done(await live.trigger(job))).outcome is Outcome.DISCARDED
            await (first if run_id in first.started else second).report(run_id)
            await live.done(run_id)
    assert (len(first.runs()), len(second.runs())) == (3, 3)
