"""Rows that are not as they should be, or that go away: the run says so, and everyone else is on time."""

import asyncio

import pytest
from sqlalchemy import delete

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.tables import job_group
from tests.support.bad_peers import on_time
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin, until
from tests.support.recording_executor import Asked, RecordingExecutor, accept

pytestmark = pytest.mark.timeout(40)


async def test_a_strategy_that_nobody_knows_fails_the_run_and_none_at_all_is_the_first(live: LiveAdmin) -> None:
    async with on_time(live), live.executor() as executor:
        await executor.register()
        for strategy in ("", "first", "Round", "NO_SUCH", "\u8f6e\u8be2", " FIRST", "x" * 50):
            job = await live.job()
            await live.change_job(job.id, executor_route_strategy=strategy)
            run = await live.done(await live.trigger(job))
            assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.FAILED, 500, 0)
            assert f"route strategy {strategy!r} is not one of FIRST, LAST, ROUND" in (run.trigger_message or "")
        assert executor.asked == []
        job = await live.job()
        await live.change_job(job.id, executor_route_strategy=None)
        run = await live.done(await live.trigger(job))
        assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, executor.address)


@pytest.mark.parametrize(
    ("column", "value"),
    [("executor_timeout", "'soon'"), ("executor_handler", "x'ff00'"), ("executor_fail_retry_count", "x'00'")],
)
async def test_a_job_whose_row_is_damaged_fails_its_runs_and_says_so(live: LiveAdmin, column: str, value: str) -> None:
    async with on_time(live), live.executor() as executor:
        await executor.register()
        job = await live.job()
        await live.admin.database.write(
            lambda c: c.exec_driver_sql(f"UPDATE xxl_job_info SET {column} = {value} WHERE id = {job.id}")
        )
        run = await live.done(await live.trigger(job))
        assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
        assert f"the job's row in the database is damaged, so that it was not sent: {column} holds" in (
            run.trigger_message or ""
        )
    assert executor.asked == []


class Parked:
    """Runs of a job, of which some are on the wire and the others wait for a slot of the address."""

    def __init__(self) -> None:
        self.release = asyncio.Event()

    async def answer(self, executor: RecordingExecutor, asked: Asked) -> dict[str, object] | bytes | None:
        await self.release.wait()
        return await accept(executor, asked)

    async def park(self, live: LiveAdmin, job: Job, executor: RecordingExecutor) -> list[RunId]:
        run_ids = await write_due(live, job, 150)
        await until(lambda: live.admin.engine.launcher.parked > 0 and len(executor.runs()) == 32)
        return run_ids


async def test_runs_whose_group_is_gone_say_so(live: LiveAdmin) -> None:
    parked = Parked()
    async with on_time(live), live.executor(parked.answer) as executor:
        await executor.register()
        job = await live.job()
        run_ids = await parked.park(live, job, executor)
        await live.admin.database.write(
            lambda c: c.execute(delete(job_group).where(job_group.c.id == job.settings.group_id))
        )
        await live.admin.engine.addresses.refresh()
        parked.release.set()
        runs = await all_done(live, job)
    arrived = {asked.log_id for asked in executor.runs()}
    assert len(arrived) == len(executor.runs())
    assert {run.outcome for run in runs if run.id in arrived} == {Outcome.SUCCEEDED}
    grounded = [run for run in runs if run.id not in arrived]
    assert grounded
    assert len(runs) == len(run_ids)
    for run in grounded:
        assert (run.outcome, run.trigger_code) == (Outcome.FAILED, 500)
        assert f"the job's group {job.settings.group_id} does not exist any more" in (run.trigger_message or "")


async def test_runs_whose_job_is_deleted_while_they_are_parked_are_gone_and_nothing_else_is(live: LiveAdmin) -> None:
    parked = Parked()
    async with on_time(live), live.executor(parked.answer) as executor:
        await executor.register()
        job, other = await live.job(), await live.job()
        run_ids = await parked.park(live, job, executor)
        others = [await live.trigger(other) for _ in range(10)]
        await live.admin.services.jobs.delete(job.id, actor="test")
        parked.release.set()
        for run_id in others:
            assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED
        launcher = live.admin.engine.launcher
        await until(lambda: not launcher.parked and not launcher.sends_in_flight and not launcher._slots._addresses)
    arrived = [asked.log_id for asked in executor.runs()]
    assert sorted(set(arrived)) == sorted(arrived)
    # What had taken off goes, what had not does not.
    assert set(arrived) - set(others) < set(run_ids)
