"""What one node was asked to drain gets no new runs from the other, either."""

from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, until
from tests.support.recording_executor import INSTANCE, Asked, RecordingExecutor
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import open_store_at

pytestmark = pytest.mark.timeout(60)


async def drain_at(node: LiveAdmin, address: str, *, draining: bool) -> None:
    group_id = await node.group_id()
    await node.admin.services.groups.drain(group_id, address, draining=draining, actor="test")


@pytest.mark.parametrize("kind", SERVER_KINDS)
async def test_a_drain_holds_on_every_node(kind: str, servers: Servers, tmp_path: Path) -> None:
    url = servers.url_of(kind)
    async with (
        open_store_at(url, CLOCK),
        live_admin(tmp_path / "1", database_url=url, database_connections=8) as first,
        live_admin(tmp_path / "2", first.token, database_url=url, database_connections=8) as second,
        first.executors(2, INSTANCE) as (one, two),
    ):
        job = await first.job()

        def known_to_the_second() -> set[str]:
            return {each.address for each in second.admin.engine.addresses.candidates(job.settings.group_id)}

        await until(lambda: known_to_the_second() == {one.address, two.address})
        await drain_at(first, one.address, draining=True)
        await until(lambda: known_to_the_second() == {two.address})
        run_ids = [await node.trigger(job) for node in (first, second) for _ in range(4)]
        runs = [await first.done(run_id) for run_id in run_ids]
        assert {run.executor_address for run in runs} == {two.address}
        assert one.runs() == []
        # The second node tells the executor the same, which it was not asked for.
        one.admin_url = second.url
        reply = await one.post("registry", one.registration())
        assert reply["data"] == {"features": {"progress": True, "drain": True}}
        await drain_at(second, one.address, draining=False)
        assert known_to_the_second() == {one.address, two.address}


async def test_a_candidate_that_is_drained_before_its_turn_is_passed_over(live: LiveAdmin) -> None:
    async with live.executors(3) as (first, second, third):

        async def drain_the_next(executor: RecordingExecutor, asked: Asked) -> dict[str, Any]:
            await drain_at(live, second.address, draining=True)
            return executor.envelope(500, reason="stopping")

        first.answer = drain_the_next
        run = await live.done(await live.trigger(await live.job(route_strategy="FIRST")))
    assert (run.outcome, run.executor_address) == (Outcome.SUCCEEDED, third.address)
    assert second.runs() == []
    assert f"no new run goes there: {second.address}" in (run.trigger_message or "")
