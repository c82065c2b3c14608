"""Children: each once for a chain that succeeded, and once for a broadcast, whatever is reported how often."""

import itertools

import pytest

from jobwheel.admin.domain.followup_words import said_by_executor
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import PendingRun, TriggerType
from jobwheel.admin.domain.writes import cut_message
from jobwheel.admin.store import chain_list, chains, run_list, run_log, runs
from jobwheel.admin.store.jobs import delete_job
from jobwheel.schedule import Language
from tests.support.followups import ENDED_MS, broadcast, events, failed, lost, runs_of, send, succeeded
from tests.support.store import NOW_MS, Store


async def family(store: Store, children: int = 1, **columns: object) -> tuple[JobId, list[JobId]]:
    """A job with so many children, each with a parameter of its own."""
    made = [await store.job(executor_param=f"child={n}", job_group=2) for n in range(children)]
    parent = await store.job(child_jobid=",".join(map(str, made)), **columns)
    return parent, made


async def child_runs(store: Store, *children: JobId) -> list[int]:
    """How many runs each child has."""
    return [len(await runs_of(store, each)) for each in children]


async def test_each_child_of_a_run_that_succeeded_runs_once(store: Store) -> None:
    node = await store.node()
    parent, (first, second) = await family(store, 2)
    run_id = await store.sending(node, job_id=parent)
    applied = await store.apply(node, succeeded(run_id))
    assert applied.pending == [
        PendingRun(
            id=applied.pending[n].id,
            job_id=job_id,
            group_id=GroupId(2),
            trigger_type=TriggerType.PARENT,
            planned_ms=ENDED_MS,
            due_ms=ENDED_MS,
            triggered_ms=ENDED_MS - ENDED_MS % 1000,
            parameter=f"child={n}",
            named_addresses=(),
            attempt=1,
            parent_run_id=run_id,
        )
        for n, job_id in enumerate((first, second))
    ]
    made = [each.id for each in applied.pending]
    loaded = await store.database.read(runs.load_pending, node, made)
    assert sorted(loaded, key=lambda run: run.id) == applied.pending
    message = (await store.run_row(run_id))["handle_msg"]
    assert message == f"done\n→ children: job {first} (run {made[0]}), job {second} (run {made[1]})"
    assert said_by_executor(message) == "done"


@pytest.mark.parametrize("write", [failed, lost])
async def test_a_run_that_did_not_succeed_starts_none(store: Store, write: object) -> None:
    node = await store.node()
    parent, children = await family(store)
    await store.apply(node, write(await store.sending(node, job_id=parent)))  # type: ignore[operator]
    assert await child_runs(store, *children) == [0]


async def test_repeats_start_none_again(store: Store) -> None:
    node = await store.node()
    parent, children = await family(store)
    run_id = await store.sending(node, job_id=parent)
    for _ in range(2):
        await store.apply(node, succeeded(run_id), succeeded(run_id))
    assert await child_runs(store, *children) == [1]


async def test_a_retry_that_succeeds_starts_them(store: Store) -> None:
    node = await store.node()
    parent, children = await family(store, executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=parent)
    (retry,) = (await store.apply(node, failed(run_id))).pending
    await send(store, node, retry.id)
    (child,) = (await store.apply(node, succeeded(retry.id))).pending
    assert (child.job_id, child.parent_run_id) == (children[0], retry.id)


@pytest.mark.parametrize("late_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
async def test_a_late_success_and_that_of_the_retry_start_them_once(
    store: Store, late_first: bool, together: bool
) -> None:
    node = await store.node()
    parent, children = await family(store, executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=parent)
    (retry,) = (await store.apply(node, lost(run_id))).pending
    await send(store, node, retry.id)
    results = [succeeded(run_id), succeeded(retry.id)]
    results = results if late_first else results[::-1]
    for batch in [results] if together else [[each] for each in results]:
        await store.apply(node, *batch)
    assert await child_runs(store, *children) == [1]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_a_broadcast_starts_them_once_when_every_shard_has_succeeded(
    store: Store, order: tuple[int, ...]
) -> None:
    node = await store.node()
    parent, children = await family(store)
    shards = await broadcast(store, node, parent, 3)
    for index in order[:2]:
        await store.apply(node, succeeded(shards[index]))
    assert await child_runs(store, *children) == [0]
    (child,) = (await store.apply(node, succeeded(shards[order[2]]), succeeded(shards[order[0]]))).pending
    assert child.parent_run_id == shards[order[2]]
    assert await child_runs(store, *children) == [1]


async def test_shards_of_one_batch_start_them_once(store: Store) -> None:
    node = await store.node()
    parent, children = await family(store)
    shards = await broadcast(store, node, parent, 3)
    await store.apply(node, *(succeeded(each) for each in shards))
    assert await child_runs(store, *children) == [1]


async def test_a_broadcast_of_which_a_shard_fails_starts_none_until_its_retry_succeeds(store: Store) -> None:
    node = await store.node()
    parent, children = await family(store, executor_fail_retry_count=1)
    shards = await broadcast(store, node, parent, 3)
    (retry,) = (await store.apply(node, succeeded(shards[0]), failed(shards[1]), succeeded(shards[2]))).pending
    assert await child_runs(store, *children) == [0]
    await send(store, node, retry.id)
    await store.apply(node, succeeded(retry.id))
    assert await child_runs(store, *children) == [1]


async def test_a_late_success_of_a_shard_starts_them_once(store: Store) -> None:
    node = await store.node()
    parent, children = await family(store)
    shards = await broadcast(store, node, parent, 2)
    await store.apply(node, lost(shards[0]), succeeded(shards[1]))
    assert await child_runs(store, *children) == [0]
    await store.apply(node, succeeded(shards[0]))
    assert await child_runs(store, *children) == [1]


async def test_a_child_that_is_gone_is_an_event(store: Store) -> None:
    node = await store.node()
    parent, (first, gone) = await family(store, 2)
    await store.database.write(delete_job, gone)
    run_id = await store.sending(node, job_id=parent)
    await store.apply(node, succeeded(run_id))
    assert await child_runs(store, first, gone) == [1, 0]
    assert await events(store) == [("run.child_gone", run_id)]
    assert f"job {gone} does not exist any more" in (await store.run_row(run_id))["handle_msg"]


@pytest.mark.parametrize("text", ["²", "99999999999", "-1", "x, ,", "2147483648"])
async def test_a_list_of_children_that_is_none_does_no_harm(store: Store, text: str) -> None:
    node = await store.node()
    run_id = await store.sending(node, job_id=await store.job(child_jobid=text))
    other = await store.sending(node, job_id=await store.job())
    applied = await store.apply(node, succeeded(run_id), succeeded(other))
    assert ([each.run_id for each in applied.ended], applied.pending) == ([run_id, other], [])


async def test_a_circle_that_somebody_else_made_ends_where_it_would_begin_again(store: Store) -> None:
    node = await store.node()
    first, (second,) = await family(store)
    await store.change_job(second, child_jobid=str(first))
    run_id = await store.sending(node, job_id=first)
    (child,) = (await store.apply(node, succeeded(run_id))).pending
    await send(store, node, child.id)
    assert (await store.apply(node, succeeded(child.id))).pending == []
    assert await child_runs(store, first, second) == [1, 1]
    assert await events(store) == [("run.child_refused", child.id)]
    assert f"job {first} is not run" in (await store.run_row(child.id))["handle_msg"]


async def test_a_job_that_is_its_own_child_runs_once(store: Store) -> None:
    node = await store.node()
    job_id = await store.job()
    await store.change_job(job_id, child_jobid=str(job_id))
    assert (await store.apply(node, succeeded(await store.sending(node, job_id=job_id)))).pending == []
    assert await child_runs(store, job_id) == [1]


async def test_a_child_of_too_many_generations_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chains, "MOST_GENERATIONS", 3)
    node = await store.node()
    jobs = [await store.job() for _ in range(6)]
    for parent, child in itertools.pairwise(jobs):
        await store.change_job(parent, child_jobid=str(child))
    run_id = await store.sending(node, job_id=jobs[0])
    while applied := (await store.apply(node, succeeded(run_id))).pending:
        run_id = applied[0].id
        await send(store, node, run_id)
    assert await child_runs(store, *jobs) == [1, 1, 1, 1, 1, 0]


async def test_a_fix_delay_child_that_runs_waits_for_its_end(store: Store) -> None:
    node = await store.node()
    parent, (child,) = await family(store)
    await store.change_job(child, schedule_type="FIX_DELAY", schedule_conf="7", trigger_next_time=NOW_MS + 5_000)
    (run,) = (await store.apply(node, succeeded(await store.sending(node, job_id=parent)))).pending
    assert (await store.job_row(child))["trigger_next_time"] == AWAITING_SETTLEMENT_MS
    await send(store, node, run.id)
    assert (await store.apply(node, succeeded(run.id, ENDED_MS + 1_000))).rescheduled
    assert (await store.job_row(child))["trigger_next_time"] == ENDED_MS + 8_000


async def test_a_fix_delay_child_that_is_stopped_keeps_its_time(store: Store) -> None:
    node = await store.node()
    parent, (child,) = await family(store)
    stopped = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": 0, "trigger_status": 0}
    await store.change_job(child, **stopped)
    await store.apply(node, succeeded(await store.sending(node, job_id=parent)))
    assert (await store.job_row(child))["trigger_next_time"] == 0
    assert await child_runs(store, child) == [1]


async def test_a_retry_of_a_child_is_one_as_well(store: Store) -> None:
    node = await store.node()
    parent, (child_job,) = await family(store)
    await store.change_job(child_job, executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=parent)
    (child,) = (await store.apply(node, succeeded(run_id))).pending
    await send(store, node, child.id)
    (retry,) = (await store.apply(node, failed(child.id))).pending
    assert (retry.trigger_type, retry.parent_run_id) == (TriggerType.RETRY, run_id)


async def test_the_executor_is_told_what_its_parent_said(store: Store) -> None:
    node = await store.node()
    parent, _ = await family(store)
    messages = ["", "done", "first\n→ second", "€" * 100]
    run_ids = [await store.sending(node, job_id=parent) for _ in messages]
    await store.apply(node, *(succeeded(each, message=said) for each, said in zip(run_ids, messages, strict=True)))
    stored = await store.database.read(chains.read_results, [*run_ids, RunId(2**40)])
    assert [said_by_executor(stored[each]) for each in run_ids] == messages
    assert stored.keys() == set(run_ids)


async def test_a_chain_tells_parent_and_children(store: Store) -> None:
    node = await store.node()
    parent, (child_job,) = await family(store, executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=parent)
    (retry,) = (await store.apply(node, failed(run_id))).pending
    await send(store, node, retry.id)
    (child,) = (await store.apply(node, succeeded(retry.id))).pending
    for each in (run_id, retry.id):
        run = await store.database.read(run_list.get_run, each)
        assert run is not None
        chain = await store.database.read(chain_list.load_chain, run)
        assert [related.id for related in chain.attempts] == [run_id, retry.id]
        assert [(related.id, related.job_id) for related in chain.children] == [(child.id, child_job)]
    run = await store.database.read(run_list.get_run, child.id)
    assert run is not None
    chain = await store.database.read(chain_list.load_chain, run)
    assert chain.parent is not None
    assert (chain.parent.id, [related.id for related in chain.attempts]) == (retry.id, [child.id])


@pytest.mark.parametrize("language", Language)
async def test_the_longest_message_has_room_for_what_came_of_the_run(store: Store, language: Language) -> None:
    """A message of 200 KB, in letters of three bytes, of a job with as many children as it may have."""
    node = await store.node()
    gone = ",".join(str(each) for each in range(1, 256))[:255].rpartition(",")[0]
    run_id = await store.sending(node, job_id=await store.job(child_jobid=gone))
    result = succeeded(run_id, message=cut_message("€" * 70_000))
    await store.database.write(run_log.apply, store.zone, node, [result], language)
    row = await store.run_row(run_id)
    assert (row["outcome"], row["handle_msg"].count("→")) == ("succeeded", 1)
    assert said_by_executor(row["handle_msg"]) == result.message


async def test_a_failure_with_the_longest_message_is_tried_again(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node, job_id=await store.job(executor_fail_retry_count=1))
    message = cut_message("\U0001f600\\\f\x07" * 30_000)
    (retry,) = (await store.apply(node, failed(run_id, message=message))).pending
    assert (await store.run_row(run_id))["handle_msg"] == f"{message}\n→ tried again at once: run {retry.id}"
