"""From a failing handler to the alarm: the whole way, with an executor on the SDK and a webhook."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Outcome, Run
from jobwheel.admin.store.groups import find_groups
from tests.support.http_peer import HttpPeer, unused_port
from tests.support.live_admin import LiveAdmin, live_admin, seen, until


def alarms(**fields: object) -> dict[str, object]:
    """A job's wishes, as the API gives them."""
    return {
        "channel_ids": [],
        "failures": "FINAL",
        "also": [],
        "success_after_failure": False,
        "late_start_s": None,
        "long_run_s": None,
        "most_open_runs": None,
        **fields,
    }


class Failing:
    """A handler that fails until it is told not to."""

    fails = True

    async def __call__(self, ctx: JobContext) -> None:
        if self.fails:
            raise ValueError(f"no such file, attempt {ctx.attempt}")


@dataclass
class Whole:
    """An admin with a default webhook, and an executor whose handler fails."""

    live: LiveAdmin
    hook: HttpPeer
    handler: Failing

    async def told(self, count: int) -> list[dict[str, Any]]:
        """What the webhook got, once it got so much and nothing waits."""
        await until(lambda: len(self.hook.requests) >= count)
        return [json.loads(each.body) for each in self.hook.requests]

    async def chain(self, job: Job, count: int) -> list[Run]:
        """The job's runs, oldest first, once there are so many and all have ended."""

        async def look() -> list[Run] | None:
            found = await self.live.runs(job)
            return found if len(found) == count and all(run.phase is None for run in found) else None

        return await seen(look)


@pytest.fixture
async def whole(tmp_path: Path) -> AsyncIterator[Whole]:
    async with HttpPeer() as hook, live_admin(tmp_path / "data", alarms_to_private_addresses=True) as live:
        handler = Failing()
        executor = Executor(
            "orders", live.url, live.token, port=unused_port(), log_path=tmp_path / "executor", stop_deadline_s=1
        )
        executor.register("settle", handler)
        assert hook._server is not None
        url = f"http://127.0.0.1:{hook._server.sockets[0].getsockname()[1]}/"
        channel = {"name": "hook", "kind": "webhook", "settings": {"url": url}, "is_default": True}
        await live.admin.services.alarm_channels.create(channel, actor="test")
        async with executor.lifespan():
            await seen(lambda: live.admin.database.read(find_groups, live.admin.installation.zone, "orders"))
            yield Whole(live, hook, handler)


async def test_a_chain_that_fails_is_told_once_after_its_last_run(whole: Whole) -> None:
    job = await whole.live.job(retry_count=2, alarms=alarms(success_after_failure=True))
    await whole.live.trigger(job)
    runs = await whole.chain(job, 3)
    assert [(run.attempt, run.outcome) for run in runs] == [(n, Outcome.FAILED) for n in (1, 2, 3)]
    (alarm,) = await whole.told(1)
    assert (alarm["kind"], alarm["run_id"], alarm["attempts"]) == ("failed", str(runs[-1].id), "3")
    assert "no such file, attempt 3" in alarm["message"]
    whole.handler.fails = False
    await whole.live.trigger(job)
    # Whatever had been told of the attempts before would have come first.
    assert [each["kind"] for each in await whole.told(2)][1:] == ["recovered"]


async def test_each_failure_is_told_if_the_job_wants_it(whole: Whole) -> None:
    job = await whole.live.job(retry_count=1, retry_interval_s=3600, alarms=alarms(failures="EVERY"))
    await whole.live.trigger(job)
    (alarm,) = await whole.told(1)
    assert alarm["attempts"] == "1"
    assert "no such file, attempt 1" in alarm["message"]
