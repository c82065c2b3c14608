"""SHARDING_BROADCAST: one run becomes one for each executor."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Run
from jobwheel.admin.store.take_off import take_off
from tests.support.bad_peers import fixed_group, loopbacks, on_time
from tests.support.due_runs import write_due
from tests.support.http_peer import HttpPeer
from tests.support.live_admin import LiveAdmin, live_admin, seen, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept, refuse


def shards(asked: list[Asked]) -> list[tuple[int, int]]:
    return [(each.body["broadcastIndex"], each.body["broadcastTotal"]) for each in asked]


async def all_done(live: LiveAdmin, job: Job, count: int) -> list[Run]:
    """The job's runs, oldest first, once there are so many and all have ended."""

    async def look() -> list[Run] | None:
        found = await live.runs(job)
        return found if len(found) == count and all(run.phase is None for run in found) else None

    return await seen(look)


@pytest.mark.parametrize("instance", [INSTANCE, None], ids=["ours", "others"])
async def test_every_executor_gets_its_shard(live: LiveAdmin, instance: str | None) -> None:
    async with live.executors(3, instance) as group:
        job = await live.job(route_strategy="SHARDING_BROADCAST", parameter="day=1")
        first = await live.trigger(job)
        runs = await all_done(live, job, 3)
        assert [shards(each.runs()) for each in group] == [[(0, 3)], [(1, 3)], [(2, 3)]]
    assert [run.executor_address for run in runs] == [each.address for each in group]
    assert [str(run.shard) for run in runs] == ["0/3", "1/3", "2/3"]
    assert {run.broadcast_id for run in runs} == {first}
    assert {(run.outcome, run.parameter, run.planned_ms) for run in runs} == {
        (Outcome.SUCCEEDED, "day=1", runs[0].planned_ms)
    }
    assert "shard: 1/3" in (runs[1].trigger_message or "")


async def test_a_shard_that_is_refused_fails_alone_and_goes_nowhere_else(live: LiveAdmin) -> None:
    async with live.executors(2) as (good, bad):
        bad.answer = refuse(500, reason="stopping")
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        await live.trigger(job)
        runs = await all_done(live, job, 2)
        assert shards(good.runs()) == [(0, 2)]
    assert [run.outcome for run in runs] == [Outcome.SUCCEEDED, Outcome.FAILED]


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_the_shard_of_an_executor_that_is_gone_fails_and_the_next_broadcast_is_smaller(
    live: LiveAdmin, at: int
) -> None:
    async with live.executors(3) as group:
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        gone = group.pop(at)
        await gone.disappear()
        await live.trigger(job)
        first = await all_done(live, job, 3)
        await live.trigger(job)
        second = (await all_done(live, job, 5))[3:]
        firsts = [shard for shard in [(0, 3), (1, 3), (2, 3)] if shard != (at, 3)]
        assert [shards(each.runs()) for each in group] == [[firsts[0], (0, 2)], [firsts[1], (1, 2)]]
    failed = first.pop(at)
    assert {run.outcome for run in [*first, *second]} == {Outcome.SUCCEEDED}
    assert (failed.outcome, failed.trigger_code, failed.executor_address) == (Outcome.FAILED, 500, gone.address)
    assert f"{gone.address} unreachable" in (failed.trigger_message or "")
    assert [str(run.shard) for run in second] == ["0/2", "1/2"]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.timeout(30)
async def test_an_executor_that_hangs_keeps_no_other_shard_waiting(tmp_path: Path, prepared: Path, at: int) -> None:
    shutil.copytree(prepared, tmp_path / "data")
    released = asyncio.Event()

    async def hold(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | bytes | None:
        await released.wait()
        return await accept(executor, asked)

    # A shard that waits for the end of another's request would not be seen within the time that the test waits.
    async with live_admin(tmp_path / "data", send_timeout_s=30.0) as live, live.executors(3) as group:
        hanging = group[at]
        hanging.answer = hold
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        await live.trigger(job)
        await until(lambda: all(each.runs() for each in group))

        async def others_done() -> bool:
            return [run.phase is None for run in await live.runs(job)] == [each is not hanging for each in group]

        await seen(others_done)
        released.set()
        runs = await all_done(live, job, 3)
        assert [shards(each.runs()) for each in group] == [[(0, 3)], [(1, 3)], [(2, 3)]]
    assert {run.outcome for run in runs} == {Outcome.SUCCEEDED}


async def test_a_broadcast_to_addresses_named_by_hand(live: LiveAdmin) -> None:
    async with live.executors(3) as group:
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        await live.trigger(job, group[0].address, group[2].address)
        await all_done(live, job, 2)
        assert [shards(each.runs()) for each in group] == [[(0, 2)], [], [(1, 2)]]


async def test_a_broadcast_to_nobody_fails_and_says_so(live: LiveAdmin) -> None:
    async with live.executors(1) as (only,):
        await only.leave()
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        run = await live.done(await live.trigger(job))
    assert run.outcome is Outcome.FAILED
    assert "no live address" in (run.trigger_message or "")


async def test_a_group_of_one_is_one_shard(live: LiveAdmin) -> None:
    async with live.executors(1) as (only,):
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        run = await live.done(await live.trigger(job))
        assert shards(only.runs()) == [(0, 1)]
    assert (run.outcome, str(run.shard)) == (Outcome.SUCCEEDED, "0/1")


async def test_a_take_off_that_fails_is_made_again_and_keeps_no_slot(
    live: LiveAdmin, caplog: pytest.LogCaptureFixture
) -> None:
    refuse_take_off = (
        "CREATE TRIGGER refuse BEFORE UPDATE ON xxl_job_log WHEN NEW.phase = 'sending' "
        "BEGIN SELECT RAISE(ABORT, 'not now'); END"
    )
    async with live.executors(2) as group:
        job = await live.job(route_strategy="SHARDING_BROADCAST")
        await live.admin.database.write(lambda c: c.exec_driver_sql(refuse_take_off))
        run_id = await live.trigger(job)
        await until(lambda: "launcher.take_off_failed" in caplog.text)
        await live.admin.database.write(lambda c: c.exec_driver_sql("DROP TRIGGER refuse"))
        assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
        await all_done(live, job, 2)
        assert [shards(each.runs()) for each in group] == [[(0, 2)], [(1, 2)]]
        await until(lambda: not live.admin.engine.launcher._slots._addresses)


@pytest.mark.timeout(40)
async def test_many_broadcasts_to_many_addresses_take_off_a_bounded_number_at_a_time(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = live.admin.database.write
    rows: list[int] = []

    async def count(work: Callable[..., Any], *args: Any) -> Any:
        taken = await write(work, *args)
        if work is take_off and taken.shards:
            rows.append(sum(len(shards) + 1 for shards in taken.shards.values()))
        return taken

    monkeypatch.setattr(live.admin.database, "write", count)
    # Nothing hangs here that others could wait for, but both ends of thousands of requests are in this one process.
    async with HttpPeer(host="0.0.0.0") as peer, on_time(live, 5000):
        await fixed_group(live, "many", loopbacks(300, peer.port))
        job = await live.job(app_name="many", route_strategy="SHARDING_BROADCAST")
        await write_due(live, job, 14)
        await until(lambda: sum(rows) == 14 * 300, 20)
    assert rows == [1800, 1800, 600]


@pytest.mark.timeout(30)
async def test_broadcasts_that_come_too_fast_leave_their_turn_to_runs_that_wait(tmp_path: Path, prepared: Path) -> None:
    """Each shard that arrives brings two more broadcasts: the address never has fewer on their way than slots."""
    shutil.copytree(prepared, tmp_path / "data")
    began = asyncio.Event()

    async with live_admin(tmp_path / "data", address_limit=1) as live, live.executors(1) as (only,):
        flood, job = await live.job(route_strategy="SHARDING_BROADCAST"), await live.job()

        async def one_more(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | bytes | None:
            await began.wait()
            if asked.body["jobId"] == flood.id:
                await write_due(live, flood, 2)
            return await accept(executor, asked)

        only.answer = one_more
        await write_due(live, flood, 20)
        await until(lambda: live.admin.engine.collect().sends_in_flight == 20)
        run_ids = await write_due(live, job, 20)
        await until(lambda: live.admin.engine.launcher.parked == 20)
        began.set()
        await until(lambda: {each.log_id for each in only.runs()} >= set(run_ids), 15)
        only.answer = accept
