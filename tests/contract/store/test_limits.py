"""The cluster-wide limit of a job: who takes off, who waits, who is discarded, and who is called when there is room."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import delete

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome, PendingRun, Shard
from jobwheel.admin.domain.writes import MOST_MESSAGE_BYTES, Ended, Settlement, TakeBack, Unconfirmed
from jobwheel.admin.store import limits, run_log, runs
from jobwheel.admin.store.limits import WAITING, Turn, turn_of
from jobwheel.admin.store.tables import job_info
from jobwheel.admin.store.take_off import Batch, Broadcast, TakenOff, take_off
from tests.support import store as rows
from tests.support.plans import insert_many
from tests.support.store import NOW_MS, Store

OTHER = NodeId(2**40)


def batch(runs: Sequence[PendingRun], discards: Mapping[RunId, str]) -> Batch:
    """These runs, all of jobs with a limit."""
    limited = defaultdict[JobId, dict[RunId, Turn]](dict)
    for run in runs:
        limited[run.job_id][run.id] = turn_of(run)
    return Batch([rows.take_off(run.id) for run in runs], limited, discards)


async def leave(
    store: Store, node: NodeId, runs: Sequence[PendingRun], discards: Mapping[RunId, str] | None = None
) -> TakenOff:
    return await store.database.write(take_off, store.zone, node, NOW_MS + 40, batch(runs, discards or {}))


async def states(store: Store, runs: Sequence[PendingRun]) -> list[tuple[Any, Any]]:
    """Phase and owner of each."""
    found = [await store.run_row(run.id) for run in runs]
    return [(row["phase"], row["owner"]) for row in found]


async def test_a_run_over_the_limit_that_does_not_wait_is_done_with_its_take_off(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    first, second = await store.pending(node, NOW_MS, NOW_MS + 1, job_id=job_id)
    taken = await leave(store, node, [first, second], {first.id: "no room\n", second.id: "no room\n"})
    assert taken.matched == {first.id}
    assert taken.discarded == [Ended(second.id, job_id, Outcome.DISCARDED, NOW_MS + 40)]
    row = await store.run_row(second.id)
    assert (row["phase"], row["owner"], row["outcome"], row["check_ms"]) == (None, None, "discarded", None)
    assert (row["trigger_code"], row["handle_code"], row["trigger_msg"]) == (500, 0, "no room\n")
    assert (row["sent_ms"], row["ended_ms"], row["executor_address"]) == (NOW_MS + 40, NOW_MS + 40, rows.ADDRESS)
    assert (row["executor_handler"], row["route"], row["alarm_status"]) == ("settle", "FIRST", 1)
    assert (await store.run_row(first.id))["phase"] == "sending"


async def test_only_an_own_pending_run_is_discarded(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    await store.sending(node, job_id)
    foreign = (await store.pending(OTHER, job_id=job_id))[0]
    doubted, sent = await store.pending(node, NOW_MS, NOW_MS, job_id=job_id)
    for run in (doubted, sent):
        await store.change_run(run.id, phase="sending")
    await store.apply(node, Unconfirmed(doubted.id, NOW_MS, NOW_MS, ""))
    runs = [foreign, doubted, sent]
    taken = await leave(store, node, runs, {run.id: "no room\n" for run in runs})
    assert (taken.matched, list(taken.discarded)) == (set(), [])
    assert await states(store, runs) == [("pending", OTHER), ("unconfirmed", None), ("sending", node)]


async def test_a_message_that_is_too_long_is_cut(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    await store.sending(node, job_id)
    run = (await store.pending(node, job_id=job_id))[0]
    await leave(store, node, [run], {run.id: "账" * 40_000})
    assert len((await store.run_row(run.id))["trigger_msg"].encode()) <= MOST_MESSAGE_BYTES


async def broadcast(store: Store, node: NodeId, job_id: JobId, total: int) -> list[PendingRun]:
    """The shards of a broadcast that took off, and were taken back before a byte of them was sent."""
    first = (await store.pending(node, job_id=job_id))[0]
    shards = [
        msgspec.structs.replace(rows.new_run(node, job_id=job_id), shard=Shard(index, total), broadcast_id=first.id)
        for index in range(1, total)
    ]
    told = Broadcast(first.id, shards, [rows.take_off(first.id) for _ in shards])
    alone = Batch([rows.take_off(first.id)], broadcasts=[told])
    taken = await store.database.write(take_off, store.zone, node, NOW_MS, alone)
    ids = [first.id, *(run.id for run in taken.shards[first.id])]
    assert await store.database.write(run_log.take_back, [TakeBack(each, node, NOW_MS) for each in ids]) == total
    return await load(store, node, ids)


async def load(store: Store, node: NodeId, run_ids: Sequence[RunId]) -> list[PendingRun]:
    """What the engine would hold of these, in their order."""
    found = await store.database.read(runs.load_pending, node, run_ids)
    return sorted(found, key=lambda run: run.id)


async def test_a_run_does_not_overtake_older_ones_that_were_called(store: Store) -> None:
    """What is called goes by way of the database; a run that had just come due was in memory, and faster."""
    node, job_id = await store.node(), await store.job(run_limit=2)
    flying = await store.sending(node, job_id)
    called, fresh, another = await store.pending(node, NOW_MS, NOW_MS + 1, NOW_MS + 2, job_id=job_id)
    assert (await leave(store, node, [fresh])).matched == set()
    assert await states(store, [called, fresh]) == [("pending", node), ("pending", WAITING)]
    assert (await leave(store, node, [called, another])).matched == {called.id}
    await store.apply(node, Settlement(flying, NOW_MS + 50, 200, Outcome.SUCCEEDED, ""))
    assert await states(store, [fresh]) == [("pending", node)]


async def test_older_ones_that_were_called_take_no_more_room_than_they_need(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=3)
    called, fresh, next_one, last = await store.pending(node, *(NOW_MS + n for n in range(4)), job_id=job_id)
    later = (await store.pending(node, NOW_MS + 60_000, job_id=job_id))[0]
    shards = await broadcast(store, node, await store.job(run_limit=2), 3)
    assert (await leave(store, node, [fresh, next_one, last])).matched == {fresh.id, next_one.id}
    assert await states(store, [called, last, later]) == [("pending", node), ("pending", WAITING), ("pending", node)]
    assert (await leave(store, node, [called])).matched == {called.id}
    # The shards that wait for their turn are one run of their job.
    of_shards = (await store.pending(node, NOW_MS + 9, job_id=shards[0].job_id))[0]
    assert (await leave(store, node, [of_shards])).matched == {of_shards.id}


async def test_who_does_not_wait_leaves_no_room_to_others(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    _, second = await store.pending(node, NOW_MS, NOW_MS + 1, job_id=job_id)
    assert (await leave(store, node, [second], {second.id: "no room\n"})).matched == {second.id}


async def test_shards_that_were_taken_back_take_off_as_one(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=2)
    shards = await broadcast(store, node, job_id, 3)
    later, last = await store.pending(node, NOW_MS + 1, NOW_MS + 2, job_id=job_id)
    taken = await leave(store, node, [*shards, later, last])
    assert taken.matched == {*(run.id for run in shards), later.id}
    assert await states(store, [last]) == [("pending", WAITING)]


async def test_no_shard_of_a_broadcast_takes_off_without_room(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    shards = await broadcast(store, node, job_id, 3)
    await store.sending(node, job_id)
    assert (await leave(store, node, shards)).matched == set()
    assert await states(store, shards) == [("pending", WAITING)] * 3


async def test_a_shard_whose_broadcast_is_under_way_has_room(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    shards = await broadcast(store, node, job_id, 4)
    assert (await leave(store, node, shards[:1])).matched == {shards[0].id}
    older = (await store.pending(node, NOW_MS - 1, job_id=job_id))[0]
    assert (await leave(store, node, [older, *shards[1:3]])).matched == {run.id for run in shards[1:3]}
    assert await states(store, [older]) == [("pending", WAITING)]
    discards = {run.id: "no room\n" for run in shards}
    assert (await leave(store, node, shards[3:], discards)).matched == {shards[3].id}


async def test_the_shards_of_a_broadcast_are_called_as_one(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=2)
    under_way = [await store.sending(node, job_id) for _ in range(2)]
    shards = await broadcast(store, node, job_id, 3)
    later, last = await store.pending(node, NOW_MS + 1, NOW_MS + 2, job_id=job_id)
    await leave(store, node, [*shards, later, last])
    assert (await store.apply(node, ended(under_way[0]))).called
    assert await states(store, [*shards, later]) == [("pending", node)] * 3 + [("pending", WAITING)]
    await store.change_job(job_id, run_limit=3)
    assert (await leave(store, node, shards)).matched == {run.id for run in shards}
    await store.apply(node, ended(under_way[1]))
    assert await states(store, [later, last]) == [("pending", node)] * 2


async def test_room_for_two_calls_a_broadcast_and_the_run_after_it(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=2)
    under_way = [await store.sending(node, job_id) for _ in range(2)]
    shards = await broadcast(store, node, job_id, 3)
    later, last = await store.pending(node, NOW_MS + 1, NOW_MS + 2, job_id=job_id)
    await leave(store, node, [*shards, later, last])
    await store.apply(node, *(ended(run_id) for run_id in under_way))
    assert await states(store, [*shards, later, last]) == [("pending", node)] * 4 + [("pending", WAITING)]


async def test_a_waiting_shard_is_called_when_its_broadcast_is_under_way(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    under_way = await store.sending(node, job_id)
    shards = await broadcast(store, node, job_id, 3)
    older = (await store.pending(node, NOW_MS - 1, job_id=job_id))[0]
    await leave(store, node, [older, shards[2]])
    await store.apply(node, ended(under_way))
    assert await states(store, [older, shards[2]]) == [("pending", node), ("pending", WAITING)]
    # There is room for one beside it, which the two that did not wait have.
    await store.change_job(job_id, run_limit=2)
    await leave(store, node, shards[:2])
    assert await states(store, shards) == [("sending", node)] * 2 + [("pending", WAITING)]
    assert (await store.apply(node, ended(shards[0].id))).called
    assert await states(store, [shards[2]]) == [("pending", node)]
    await store.change_job(job_id, run_limit=1)
    assert (await leave(store, node, [older, shards[2]])).matched == {shards[2].id}


def ended(run_id: RunId) -> Settlement:
    return Settlement(run_id, NOW_MS + 50, 200, Outcome.SUCCEEDED, "")


@pytest.mark.parametrize("limit", [0, -1, -(2**31)])
async def test_a_limit_below_one_in_the_database_is_none(store: Store, limit: int) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    under_way = await store.sending(node, job_id)
    waiting = (await store.pending(node, job_id=job_id))[0]
    await leave(store, node, [waiting])
    await store.change_job(job_id, run_limit=limit)
    assert not (await store.apply(node, ended(under_way))).called
    assert await store.database.write(limits.call_all, node) == 1
    new = (await store.pending(node, job_id=job_id))[0]
    assert (await leave(store, node, [waiting, new], {new.id: "no room\n"})).matched == {waiting.id, new.id}


async def test_a_lowered_limit_holds_those_that_wait_until_enough_have_ended(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=3)
    under_way = [await store.sending(node, job_id) for _ in range(3)]
    waiting = await store.pending(node, NOW_MS, NOW_MS + 1, job_id=job_id)
    await leave(store, node, waiting)
    await store.change_job(job_id, run_limit=1)
    for run_id in under_way[:2]:
        assert not (await store.apply(node, ended(run_id))).called
        assert await store.database.write(limits.call_all, node) == 0
    assert (await store.apply(node, ended(under_way[2]))).called
    assert await states(store, waiting) == [("pending", node), ("pending", WAITING)]


async def test_the_runs_of_a_job_that_is_gone_do_not_wait(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    under_way = await store.sending(node, job_id)
    waiting = await store.pending(node, NOW_MS, NOW_MS + 1, job_id=job_id)
    await leave(store, node, waiting)
    # By somebody who knows nothing of our columns.
    await store.database.write(lambda c: c.execute(delete(job_info).where(job_info.c.id == job_id)))
    assert (await store.apply(node, ended(under_way))).ended
    assert await store.database.write(limits.call_all, node) == 2
    ids = [run.id for run in waiting]
    await store.database.write(take_off, store.zone, node, NOW_MS, Batch([], orphans=ids))
    assert await load(store, node, ids) == []


async def test_a_limit_that_is_taken_off_calls_more_than_fit_one_statement(store: Store) -> None:
    node, job_id = await store.node(), await store.job(run_limit=1)
    await store.sending(node, job_id)
    columns = ("job_group", "job_id", "trigger_type", "planned_ms", "due_ms", "triggered_ms", "phase", "owner")
    waiting = [(1, job_id, "CRON", NOW_MS, NOW_MS, NOW_MS, "pending", WAITING)] * 33_000
    await store.database.write(insert_many, "xxl_job_log", columns, waiting)
    await store.change_job(job_id, run_limit=None)
    called = 0
    while now := await store.database.write(limits.call_all, node):
        called += now
    assert called == 33_000


async def test_other_jobs_go_on_while_one_has_a_limit_that_is_no_number(store: Store) -> None:
    if store.database.kind != "sqlite":
        pytest.skip("only SQLite stores a text in a column of numbers")
    node, odd_id, job_id = await store.node(), await store.job(run_limit="many"), await store.job(run_limit=1)
    odd, new = [(await store.pending(node, job_id=each))[0] for each in (odd_id, job_id)]
    assert (await leave(store, node, [odd, new])).matched == {odd.id, new.id}
    assert {each.run_id for each in (await store.apply(node, ended(odd.id), ended(new.id))).ended} == {odd.id, new.id}
