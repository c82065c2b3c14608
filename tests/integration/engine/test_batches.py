"""/runBatch: executors of ours that announce it get many runs in one request."""

from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin, seen
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor, accept


async def test_runs_of_one_instant_go_together(live: LiveAdmin) -> None:
    async with live.executor(instance=INSTANCE, batch=True) as executor:
        await executor.register()
        job = await live.job()
        run_ids = await write_due(live, job, 250)
        found = await all_done(live, job)
        assert {run.outcome for run in found} == {Outcome.SUCCEEDED}
        assert sorted(asked.log_id for asked in executor.runs()) == run_ids
        assert 3 <= len(executor.batches) < 60
        assert 50 < max(map(len, executor.batches)) <= 100


@pytest.mark.parametrize("instance", [INSTANCE, None], ids=["ours without batches", "others"])
async def test_others_get_one_run_in_a_request(live: LiveAdmin, instance: str | None) -> None:
    async with live.executor(instance=instance) as executor:
        await executor.register()
        job = await live.job()
        await write_due(live, job, 40)
        assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
        assert executor.batches == []
        assert len(executor.runs()) == 40


async def test_each_run_of_a_batch_has_its_own_answer(live: LiveAdmin) -> None:
    async def refuse_odd(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
        if asked.log_id % 2:
            return executor.envelope(500, msg="odd", reason="unknown_handler")
        answer = await accept(executor, asked)
        assert isinstance(answer, dict)
        return answer

    async with live.executor(refuse_odd, instance=INSTANCE, batch=True) as executor:
        await executor.register()
        job = await live.job()
        await write_due(live, job, 30)
        found = await all_done(live, job)
    assert [run.outcome for run in found] == [Outcome.FAILED if run.id % 2 else Outcome.SUCCEEDED for run in found]


async def test_runs_that_a_stopping_executor_refuses_go_to_the_next(live: LiveAdmin) -> None:
    async def stopping(executor: RecordingExecutor, _: Asked) -> dict[str, Any]:
        return executor.envelope(500, reason="stopping")

    async with (
        live.executor(instance=INSTANCE, batch=True) as one,
        live.executor(instance=INSTANCE, batch=True) as two,
    ):
        first, second = sorted((one, two), key=lambda executor: executor.address)
        first.answer = stopping
        for executor in (first, second):
            await executor.register()
        job = await live.job(route_strategy="FIRST")
        await write_due(live, job, 30)
        found = await all_done(live, job)
    assert {(run.outcome, run.executor_address) for run in found} == {(Outcome.SUCCEEDED, second.address)}


async def test_a_batch_that_is_not_answered_is_unconfirmed_and_sent_again_run_by_run(live: LiveAdmin) -> None:
    silent = True

    async def cut(executor: RecordingExecutor, asked: Asked) -> dict[str, Any] | bytes | None:
        executor.start(asked)
        return None if silent else executor.envelope(200, reason="repeated")

    async with live.executor(cut, instance=INSTANCE, batch=True, reports=False) as executor:
        await executor.register()
        job = await live.job()
        run_ids = await write_due(live, job, 10)

        async def unconfirmed() -> bool:
            return all(run.phase == "unconfirmed" for run in await live.runs(job))

        await seen(unconfirmed)
        silent = False
        for run_id in run_ids:
            await live.change_run(run_id, check_ms=1)

        async def accepted() -> bool:
            return all(run.phase == "accepted" for run in await live.runs(job))

        await seen(accepted)
        assert len(executor.started) == 10
        for run_id in run_ids:
            await executor.report(run_id)
        assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
