"""The cluster-wide limit of a job: who takes off, who waits, who is discarded, and who is called when there is room."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.admin.domain.writes import MOST_MESSAGE_BYTES, Ended, Unconfirmed
from jobwheel.admin.store.limits import Turn
from jobwheel.admin.store.take_off import Batch, TakenOff, take_off
from tests.support import store as rows
from tests.support.store import NOW_MS, Store

OTHER = NodeId(2**40)


def batch(runs: Sequence[PendingRun], discards: Mapping[RunId, str]) -> Batch:
    """These runs, all of jobs with a limit."""
    limited = defaultdict[JobId, list[Turn]](list)
    for run in runs:
        limited[run.job_id].append((run.due_ms, run.id))
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
