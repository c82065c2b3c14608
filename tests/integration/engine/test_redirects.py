"""Runs that certainly did not arrive go on to their next candidates, or wait: none is left behind."""

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from sqlalchemy import text

from jobwheel.admin.domain.run import Outcome
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin
from tests.support.recording_executor import INSTANCE, RecordingExecutor


@dataclass
class Pair:
    """Two executors, of which one has registered and is gone, and the strategy that tries that one first."""

    alive: RecordingExecutor
    strategy: str


@pytest.fixture
async def pair(live: LiveAdmin) -> AsyncIterator[Pair]:
    async with live.executor(instance=INSTANCE, batch=True) as alive:
        async with live.executor(instance=INSTANCE, batch=True) as gone:
            await gone.register()
            await alive.register()
        yield Pair(alive, "FIRST" if gone.address < alive.address else "LAST")


async def test_a_batch_goes_on_as_a_batch(live: LiveAdmin, pair: Pair) -> None:
    job = await live.job(route_strategy=pair.strategy)
    run_ids = await write_due(live, job, 300)
    assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
    assert sorted(asked.log_id for asked in pair.alive.runs()) == run_ids
    assert len(pair.alive.batches) < 60


async def test_a_run_whose_redirect_the_database_refuses_waits_and_runs(
    live: LiveAdmin, pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    job = await live.job(route_strategy=pair.strategy)
    refuse = text(
        "CREATE TRIGGER refuse BEFORE UPDATE OF executor_address ON xxl_job_log WHEN OLD.phase = 'sending' "
        "AND NEW.phase = 'sending' BEGIN SELECT RAISE(ABORT, 'refused'); END"
    )
    await live.admin.database.write(lambda c: c.execute(refuse))
    run_ids = await write_due(live, job, 30)
    found = await all_done(live, job)
    assert "redirect_failed" in caplog.text
    assert {(run.outcome, run.executor_address) for run in found} == {(Outcome.SUCCEEDED, pair.alive.address)}
    assert sorted(asked.log_id for asked in pair.alive.runs()) == run_ids
