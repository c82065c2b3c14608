"""A claim while others hold the schedule's lock: it finds its moment between theirs."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.claimer import Claimer, ClaimLimits
from jobwheel.admin.store import claims
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.errors import ScheduleLockedError
from jobwheel.kernel.clock import SystemClock
from tests.contract.store.test_several_nodes import then_sleep
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import Store, open_store_at


@pytest.fixture(params=SERVER_KINDS)
def url(request: pytest.FixtureRequest, servers: Servers) -> str:
    return servers.url_of(request.param)


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    async with open_store_at(url, SystemClock()) as opened:
        yield opened


@pytest.fixture
async def other(url: str, store: Store) -> AsyncIterator[Database]:
    """The database as a second node has it open."""
    opened = open_database(url, SystemClock())
    await opened.start()
    yield opened
    await opened.stop()


def claimer(store: Store, planned: list[PendingRun]) -> Claimer:
    return Claimer(store.database, store.zone, store.clock, lambda: NodeId(1), planned.extend, ClaimLimits())


async def hold_again_and_again(other: Database, seconds: float) -> None:
    """A node that has much to claim: it has the lock nearly all the time."""
    while True:
        try:
            await other.write(then_sleep(seconds, claims.lock_schedule))
        except ScheduleLockedError:
            await SystemClock().wait(0.001)


async def test_a_claim_comes_between_those_of_a_node_that_has_much_to_claim(store: Store, other: Database) -> None:
    planned: list[PendingRun] = []
    job = await store.job(trigger_next_time=SystemClock().now() // 1000 * 1000)
    holding = asyncio.create_task(hold_again_and_again(other, 0.05))
    try:
        await asyncio.wait_for(claimer(store, planned).run_once(), 5)
    finally:
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)
    assert {run.job_id for run in planned} == {job}
