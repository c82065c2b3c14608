"""Runs that an executor on the SDK ends, as the admin settles them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.store.groups import find_groups
from tests.support.http_peer import unused_port
from tests.support.live_admin import LiveAdmin, seen, until


class Waiting:
    """A handler that ends when its run is to end."""

    def __init__(self) -> None:
        self.began: list[int] = []

    async def __call__(self, ctx: JobContext) -> None:
        self.began.append(ctx.log_id)
        await asyncio.to_thread(ctx.wait_cancelled, 9)


@pytest.fixture
async def waiting(live: LiveAdmin, tmp_path: Path) -> AsyncIterator[Waiting]:
    handler = Waiting()
    executor = Executor(
        "orders", live.url, live.token, port=unused_port(), log_path=tmp_path / "executor", stop_deadline_s=1
    )
    executor.register("settle", handler)
    await executor.start()
    await seen(lambda: live.admin.database.read(find_groups, live.admin.installation.zone, "orders"))
    yield handler
    await executor.stop()


async def test_a_run_that_takes_too_long_has_timed_out(live: LiveAdmin, waiting: Waiting) -> None:
    run = await live.done(await live.trigger(await live.job(timeout_s=1)))
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.TIMED_OUT, 200, 502)
    assert run.handle_message == "timed out after 1 s"
    page = await live.admin.services.run_logs.read(run.id, 1)
    assert "end: code 502" in (page.content or "")


async def test_a_run_that_a_later_one_covers_is_covered(live: LiveAdmin, waiting: Waiting) -> None:
    job = await live.job(block_strategy="COVER_EARLY")
    first = await live.trigger(job)
    await until(lambda: waiting.began == [first])
    second = await live.trigger(job)
    run = await live.done(first)
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.COVERED, 200, 500)
    await until(lambda: waiting.began == [first, second])


async def test_a_run_that_comes_too_early_is_discarded(live: LiveAdmin, waiting: Waiting) -> None:
    job = await live.job(block_strategy="DISCARD_LATER")
    first = await live.trigger(job)
    await until(lambda: waiting.began == [first])
    run = await live.done(await live.trigger(job))
    assert (run.outcome, run.trigger_code, run.handle_code) == (Outcome.DISCARDED, 500, 0)
    assert waiting.began == [first]
