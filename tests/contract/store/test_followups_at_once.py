"""Equal and related results on several nodes at once: one child, one retry, and nobody waits for ever."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.writes import Applied, RunWrite
from jobwheel.admin.store import run_log
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import SystemClock
from tests.support.followups import broadcast, failed, lost, runs_of, send, succeeded
from tests.support.rounds import rounds
from tests.support.store import Store

AT_ONCE = 20
ROUNDS = rounds(2)


@pytest.fixture
def store(server_store: Store) -> Store:
    return server_store


@pytest.fixture
async def databases(server_url: str, store: Store) -> AsyncIterator[list[Database]]:
    """The database as two nodes have it open."""
    opened = open_database(server_url, SystemClock())
    await opened.start()
    yield [store.database, opened]
    await opened.stop()


async def at_once(store: Store, databases: list[Database], node: NodeId, *batches: Sequence[RunWrite]) -> list[Applied]:
    """Apply all the batches at the same time, by turns on each node."""
    async with asyncio.timeout(8):
        return await asyncio.gather(
            *(
                databases[at % len(databases)].write(run_log.apply, store.zone, node, batch)
                for at, batch in enumerate(batches)
            )
        )


async def parent_of(store: Store, *children: JobId, **columns: object) -> JobId:
    return await store.job(child_jobid=",".join(map(str, children)), **columns)


async def test_twenty_equal_callbacks_start_a_child_once(store: Store, databases: list[Database]) -> None:
    node, child = await store.node(), await store.job()
    parent = await parent_of(store, child)
    for count in range(1, ROUNDS + 1):
        run_id = await store.sending(node, job_id=parent)
        applied = await at_once(store, databases, node, *[[succeeded(run_id)]] * AT_ONCE)
        assert sum(len(each.ended) for each in applied) == 1
        assert len(await runs_of(store, child)) == count


async def test_twenty_equal_failures_make_one_retry(store: Store, databases: list[Database]) -> None:
    node, job_id = await store.node(), await store.job(executor_fail_retry_count=5)
    for count in range(1, ROUNDS + 1):
        run_id = await store.sending(node, job_id=job_id)
        await at_once(store, databases, node, *[[failed(run_id)]] * AT_ONCE)
        assert len(await runs_of(store, job_id)) == 2 * count


async def test_lost_and_results_at_once_make_one_retry_and_start_a_child_once(
    store: Store, databases: list[Database]
) -> None:
    node, child = await store.node(), await store.job()
    parent = await parent_of(store, child, executor_fail_retry_count=5)
    for count in range(1, ROUNDS + 1):
        run_id = await store.sending(node, job_id=parent)
        (retry,) = (await store.apply(node, lost(run_id))).pending
        await send(store, node, retry.id)
        both = [[succeeded(run_id)], [succeeded(retry.id)], [failed(run_id)], [failed(retry.id)]]
        await at_once(store, databases, node, *both * 5)
        chain = [row for row in await runs_of(store, parent) if run_id in (row["id"], row["first_run_id"])]
        outcomes = [row["outcome"] for row in chain]
        assert len(chain) == len({row["attempt"] for row in chain}) <= 3
        assert len(await runs_of(store, child)) <= count
        if "succeeded" in outcomes:
            children = [row for row in await runs_of(store, child) if row["parent_run_id"] in {r["id"] for r in chain}]
            assert len(children) == 1


async def test_the_shards_of_a_broadcast_that_end_at_once_start_a_child_once(
    store: Store, databases: list[Database]
) -> None:
    node, child = await store.node(), await store.job()
    parent = await parent_of(store, child)
    for count in range(1, ROUNDS + 1):
        shards = await broadcast(store, node, parent, 3)
        await at_once(store, databases, node, *[[succeeded(each)] for each in shards] * 3)
        assert len(await runs_of(store, child)) == count


async def test_batches_of_jobs_that_are_each_others_kin_do_not_wait_for_each_other(
    store: Store, databases: list[Database]
) -> None:
    """Parents and children held in another order than that of their ids would be a deadlock."""
    node = await store.node()
    low, high = await store.job(), await store.job()
    parents = [await parent_of(store, high, low), await parent_of(store, low, high)]
    await store.change_job(low, executor_fail_retry_count=3)
    for _ in range(ROUNDS):
        batches = []
        for at in range(8):
            pair = [succeeded(await store.sending(node, job_id=each)) for each in parents]
            batches.append(pair if at % 2 else pair[::-1])
        await at_once(store, databases, node, *batches)
    assert [len(await runs_of(store, each)) for each in (low, high)] == [16 * ROUNDS] * 2
