"""A take-off of which nobody can say whether it was committed: its runs are sent once, to executors of any make."""

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.errors import UnknownCommitError
from jobwheel.admin.store.take_off import take_off
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin
from tests.support.recording_executor import RecordingExecutor


@pytest.fixture(params=[True, False], ids=["committed", "not committed"])
def trouble(live: LiveAdmin, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first take-off and the first undoing after it are committed, or not, and nobody learns which."""
    write = live.admin.database.write
    met: list[int] = []

    async def lose_the_answer(work: Callable[..., Any], *args: Any) -> Any:
        if (work is take_off and not met) or (work.__name__ == "take_back" and len(met) == 1):
            met.append(1)
            if request.param:
                await write(work, *args)
            raise UnknownCommitError("in a test")
        return await write(work, *args)

    monkeypatch.setattr(live.admin.database, "write", lose_the_answer)
    return met


@pytest.fixture
async def executors(live: LiveAdmin) -> AsyncIterator[list[RecordingExecutor]]:
    async with AsyncExitStack() as stack:
        made = [await stack.enter_async_context(live.executor()) for _ in range(3)]
        for executor in made:
            await executor.register()
        yield made


async def test_runs_of_an_uncertain_take_off_are_sent_once(
    live: LiveAdmin, executors: list[RecordingExecutor], trouble: list[int]
) -> None:
    job = await live.job(route_strategy="ROUND")
    run_ids = await write_due(live, job, 30)
    assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
    assert len(trouble) == 2
    assert sorted(run.log_id for executor in executors for run in executor.runs()) == run_ids


async def test_so_are_the_shards_of_a_broadcast(
    live: LiveAdmin, executors: list[RecordingExecutor], trouble: list[int]
) -> None:
    job = await live.job(route_strategy="SHARDING_BROADCAST")
    await write_due(live, job, 2)
    found = await all_done(live, job)
    assert len(trouble) == 2
    assert [run.outcome for run in found] == [Outcome.SUCCEEDED] * 6
    sent = Counter(run.log_id for executor in executors for run in executor.runs())
    assert sent == Counter(run.id for run in found)
    assert [len(executor.runs()) for executor in executors] == [2, 2, 2]
