"""Retries: written with the end of the run that they follow, once, with all that it had."""

import pytest
from sqlalchemy import insert

from jobwheel.admin.domain.followup_words import WORDS
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome, PendingRun, Shard, TriggerType
from jobwheel.admin.domain.writes import Ended, RunWrite, Settlement
from jobwheel.admin.store import chain_list, run_list, run_log, runs, take_off
from jobwheel.admin.store.jobs import delete_job
from jobwheel.admin.store.limits import turn_of
from jobwheel.admin.store.tables import alarm_channel
from jobwheel.schedule import Language
from tests.support.followups import (
    ENDED_MS,
    alarms,
    broadcast,
    failed,
    ids,
    lost,
    runs_of,
    send,
    succeeded,
    timed_out,
    unsent,
)
from tests.support.store import NOW_MS, Store
from tests.support.store import take_off as off


@pytest.mark.parametrize("write", [failed, timed_out, unsent, lost])
async def test_a_run_that_did_not_succeed_is_tried_again_with_all_that_it_had(store: Store, write: object) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    named = ["http://10.0.0.8:9999/", "http://10.0.0.9:9999/"]
    (first,) = await store.pending(node, NOW_MS - 60_000, job_id=job_id, parameter="day=7", named_addresses=named)
    await send(store, node, first.id)
    applied = await store.apply(node, write(first.id))  # type: ignore[operator]
    (retry,) = applied.pending
    assert retry == PendingRun(
        id=retry.id,
        job_id=job_id,
        group_id=first.group_id,
        trigger_type=TriggerType.RETRY,
        planned_ms=first.planned_ms,
        due_ms=ENDED_MS,
        triggered_ms=ENDED_MS - ENDED_MS % 1000,
        parameter="day=7",
        named_addresses=tuple(named),
        attempt=2,
        retries_left=2,
    )
    assert await store.database.read(runs.load_pending, node, [retry.id]) == [retry]
    row = await store.run_row(retry.id)
    assert (row["first_run_id"], row["executor_fail_retry_count"], row["phase"]) == (first.id, 2, "pending")


async def test_n_retries_are_n_plus_one_runs(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=2)
    run_id = await store.sending(node, job_id=job_id)
    made = [run_id]
    while (applied := await store.apply(node, failed(made[-1]))).pending:
        made.append(applied.pending[0].id)
        await send(store, node, made[-1])
        # What the job says now counts for new chains alone.
        await store.change_job(job_id, executor_fail_retry_count=9)
    rows = await runs_of(store, job_id)
    assert ids(rows) == made
    assert [(row["attempt"], row["first_run_id"], row["trigger_type"]) for row in rows] == [
        (1, None, "CRON"),
        (2, run_id, "RETRY"),
        (3, run_id, "RETRY"),
    ]


@pytest.mark.parametrize(
    ("columns", "waits_s"),
    [
        ({}, [0, 0, 0]),
        ({"retry_interval_s": 10}, [10, 10, 10]),
        ({"retry_interval_s": 10, "retry_backoff": "DOUBLING"}, [10, 20, 40]),
        ({"retry_interval_s": 10, "retry_backoff": "DOUBLING", "retry_most_s": 25}, [10, 20, 25]),
    ],
)
async def test_a_retry_waits_as_the_job_says(store: Store, columns: dict[str, object], waits_s: list[int]) -> None:
    node = await store.node()
    run_id = await store.sending(node, job_id=await store.job(executor_fail_retry_count=3, **columns))
    waited = []
    for _ in waits_s:
        (retry,) = (await store.apply(node, failed(run_id))).pending
        waited.append((retry.due_ms - ENDED_MS) / 1000)
        await send(store, node, run_id := retry.id)
    assert waited == waits_s


@pytest.mark.parametrize("outcome", [Outcome.KILLED, Outcome.COVERED, Outcome.DISCARDED])
async def test_what_somebody_wanted_to_end_is_not_tried_again(store: Store, outcome: Outcome) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    run_id = await store.sending(node, job_id=job_id)
    assert (await store.apply(node, unsent(run_id, outcome))).pending == []
    assert ids(await runs_of(store, job_id)) == [run_id]


async def test_repeats_make_no_further_run(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    run_id = await store.sending(node, job_id=job_id)
    await store.apply(node, failed(run_id), failed(run_id))
    assert (await store.apply(node, failed(run_id), timed_out(run_id), succeeded(run_id))).ended == []
    assert len(await runs_of(store, job_id)) == 2


@pytest.mark.parametrize("together", [True, False])
async def test_a_real_failure_after_lost_makes_no_further_run(store: Store, together: bool) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    run_id = await store.sending(node, job_id=job_id)
    batches: list[list[RunWrite]] = [[lost(run_id), failed(run_id)]] if together else [[lost(run_id)], [failed(run_id)]]
    for batch in batches:
        await store.apply(node, *batch)
    rows = await runs_of(store, job_id)
    assert [(row["attempt"], row["outcome"]) for row in rows] == [(1, "failed"), (2, None)]


async def test_lost_and_its_success_in_one_batch_is_a_success(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    run_id = await store.sending(node, job_id=job_id)
    applied = await store.apply(node, lost(run_id), succeeded(run_id))
    assert applied.pending == []
    assert ids(await runs_of(store, job_id)) == [run_id]


async def test_a_chain_that_has_succeeded_late_goes_on_with_what_is_under_way_alone(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=3)
    run_id = await store.sending(node, job_id=job_id)
    (retry,) = (await store.apply(node, lost(run_id))).pending
    await send(store, node, retry.id)
    await store.apply(node, succeeded(run_id))
    assert (await store.apply(node, failed(retry.id))).pending == []
    assert [row["outcome"] for row in await runs_of(store, job_id)] == ["succeeded", "failed"]


async def test_a_shard_is_tried_again_as_the_same_shard_at_its_address(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=1)
    shards = await broadcast(store, node, job_id, 3)
    (retry,) = (await store.apply(node, succeeded(shards[0]), failed(shards[1]), succeeded(shards[2]))).pending
    assert (retry.shard, retry.broadcast_id, retry.address) == (Shard(1, 3), shards[0], "http://10.0.0.8:9999/")
    assert (await store.run_row(retry.id))["first_run_id"] == shards[1]
    assert await store.database.read(runs.load_pending, node, [retry.id]) == [retry]


async def test_of_a_job_that_is_gone_nothing_follows(store: Store) -> None:
    node = await store.node()
    await with_channel(store)
    job_id = await store.job(executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=job_id)
    await store.database.write(delete_job, job_id)
    applied = await store.apply(node, failed(run_id))
    assert ([each.run_id for each in applied.ended], applied.pending) == ([run_id], [])
    assert await alarms(store) == []


async def test_a_fix_delay_job_waits_for_the_last_retry(store: Store) -> None:
    node = await store.node()
    delay = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": AWAITING_SETTLEMENT_MS}
    job_id = await store.job(executor_fail_retry_count=1, retry_interval_s=60, **delay)
    run_id = await store.sending(node, job_id=job_id)
    applied = await store.apply(node, failed(run_id))
    assert not applied.rescheduled
    await send(store, node, applied.pending[0].id)
    later_ms = ENDED_MS + 61_000
    assert (await store.apply(node, failed(applied.pending[0].id, later_ms))).rescheduled
    assert (await store.job_row(job_id))["trigger_next_time"] == later_ms + 7_000


async def test_a_waiting_retry_holds_no_slot_of_the_limit(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=1, retry_interval_s=60, run_limit=1)
    run_id = await store.sending(node, job_id=job_id)
    (waiting,) = await store.pending(NodeId(0), job_id=job_id)
    applied = await store.apply(node, failed(run_id))
    assert (applied.called, len(applied.pending)) == (True, 1)
    assert (await store.run_row(waiting.id))["owner"] == node


async def test_a_java_admins_run_has_the_retries_that_its_row_says(store: Store) -> None:
    """Its failure is written with its alarm taken, so that nobody but this admin tries it again."""
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=9)
    (run,) = await store.pending(node, job_id=job_id, parameter="x=1")
    foreign = {"phase": None, "owner": None, "trigger_type": None, "planned_ms": None, "trigger_code": 200}
    await store.change_run(run.id, **foreign, executor_fail_retry_count=1)
    (retry,) = (await store.apply(node, failed(run.id))).pending
    assert (retry.parameter, retry.planned_ms, retry.retries_left) == ("x=1", NOW_MS - NOW_MS % 1000, 0)
    await send(store, node, retry.id)
    assert (await store.apply(node, failed(retry.id))).pending == []


async def test_the_messages_name_the_retry_in_the_installations_language(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=1, retry_interval_s=30)
    first, second = [await store.sending(node, job_id=job_id) for _ in range(2)]
    writes: list[RunWrite] = [failed(first, message="no such file"), unsent(second)]
    applied = await store.database.write(run_log.apply, store.zone, node, writes, Language.ZH_CN)
    of_first, of_second = applied.pending
    rows = [await store.run_row(each) for each in (first, second)]
    words = WORDS[Language.ZH_CN].retried_later
    assert rows[0]["handle_msg"] == f"no such file\n→ {words.format(30, of_first.id)}"
    assert (rows[1]["handle_msg"], rows[1]["trigger_msg"]) == (None, f"failed\n→ {words.format(30, of_second.id)}\n")


@pytest.mark.parametrize(
    ("code", "outcome", "written"),
    [
        (500, Outcome.FAILED, Outcome.KILLED),
        (7, Outcome.COVERED, Outcome.KILLED),
        (502, Outcome.TIMED_OUT, Outcome.TIMED_OUT),
        (200, Outcome.SUCCEEDED, Outcome.SUCCEEDED),
    ],
)
async def test_a_failure_after_a_kill_that_was_asked_for_is_killed(
    store: Store, code: int, outcome: Outcome, written: Outcome
) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=job_id)
    await store.change_run(run_id, kill_ms=NOW_MS)
    applied = await store.apply(node, Settlement(run_id, ENDED_MS, code, outcome, "stopped"))
    assert applied.ended == [Ended(run_id, job_id, written, ENDED_MS)]
    row = await store.run_row(run_id)
    assert (row["outcome"], row["handle_code"]) == (written, code)
    assert len(applied.pending) == (1 if written is Outcome.TIMED_OUT else 0)


async def with_channel(store: Store) -> None:
    await store.database.write(lambda c: c.execute(insert(alarm_channel).values(name="m", kind="mail", settings="{}")))


async def test_alarms_are_due_for_every_attempt_and_the_last_is_marked(store: Store) -> None:
    node = await store.node()
    await with_channel(store)
    job_id = await store.job(executor_fail_retry_count=1)
    run_id = await store.sending(node, job_id=job_id)
    (retry,) = (await store.apply(node, failed(run_id))).pending
    await send(store, node, retry.id)
    await store.apply(node, timed_out(retry.id))
    await store.apply(node, timed_out(retry.id))
    assert await alarms(store) == [(run_id, "attempt.failed"), (retry.id, "run.timed_out")]


async def test_without_a_channel_no_alarm_is_due(store: Store) -> None:
    node = await store.node()
    await store.apply(node, failed(await store.sending(node, job_id=await store.job())))
    assert await alarms(store) == []


@pytest.mark.parametrize("outcome", [Outcome.KILLED, Outcome.COVERED, Outcome.DISCARDED])
async def test_other_ends_are_told_as_well(store: Store, outcome: Outcome) -> None:
    node = await store.node()
    await with_channel(store)
    run_id = await store.sending(node, job_id=await store.job(executor_fail_retry_count=1))
    await store.apply(node, unsent(run_id, outcome))
    assert await alarms(store) == [(run_id, f"run.{outcome}")]


async def test_a_failure_that_replaces_lost_is_not_told_again(store: Store) -> None:
    node = await store.node()
    await with_channel(store)
    run_id = await store.sending(node, job_id=await store.job())
    await store.apply(node, lost(run_id))
    await store.apply(node, failed(run_id))
    assert await alarms(store) == [(run_id, "run.lost")]


async def test_a_chain_tells_its_attempts_and_shards(store: Store) -> None:
    node = await store.node()
    job_id = await store.job(executor_fail_retry_count=1)
    shards = await broadcast(store, node, job_id, 2)
    (retry,) = (await store.apply(node, succeeded(shards[0]), failed(shards[1]))).pending
    run = await store.database.read(run_list.get_run, retry.id)
    assert run is not None
    assert (run.first_run_id, run.parent_run_id, run.broadcast_id) == (shards[1], None, shards[0])
    chain = await store.database.read(chain_list.load_chain, run)
    assert [each.id for each in chain.attempts] == [shards[1], retry.id]
    assert [each.id for each in chain.shards] == [*shards, retry.id]
    assert (chain.parent, chain.children) == (None, [])


async def test_a_run_that_is_discarded_for_want_of_room_is_told_and_not_tried_again(store: Store) -> None:
    node = await store.node()
    await with_channel(store)
    job_id = await store.job(executor_fail_retry_count=1, run_limit=1, run_limit_overflow="DISCARD")
    await store.sending(node, job_id=job_id)
    (run,) = await store.pending(node, job_id=job_id)
    batch = take_off.Batch([off(run.id)], {job_id: {run.id: turn_of(run)}}, {run.id: "no room\n"})
    taken = await store.database.write(take_off.take_off, store.zone, node, NOW_MS, batch)
    assert [each.run_id for each in taken.discarded] == [run.id]
    assert await alarms(store) == [(run.id, "run.discarded")]
    assert len(await runs_of(store, job_id)) == 2


async def test_a_policy_that_is_no_number_makes_no_batch_fail(store: Store) -> None:
    if store.database.kind != "sqlite":
        pytest.skip("only SQLite stores a text in a column of numbers")
    node = await store.node()
    run_ids = [
        await store.sending(node, job_id=await store.job(**columns))
        for columns in ({"executor_fail_retry_count": "many"}, {"retry_interval_s": "soon"}, {"retry_most_s": "late"})
    ]
    applied = await store.apply(node, *(failed(each) for each in run_ids))
    assert [each.run_id for each in applied.ended] == run_ids
