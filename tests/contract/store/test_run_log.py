"""The run log's hot writes, in every order in which they can come."""

import itertools

import msgspec
import pytest

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Accepted, Ended, RunWrite, Settlement, TakeBack, Unconfirmed, Unsent
from jobwheel.admin.store import checks, run_log
from jobwheel.admin.store.checks import CheckLater
from jobwheel.admin.store.run_log import SendingRun
from tests.support.store import ADDRESS, INSTANCE, NOW_MS, Store, take_off

OTHER = NodeId(2**40)
ENDED_MS = NOW_MS + 900


def accepted(run_id: RunId) -> Accepted:
    return Accepted(run_id, NOW_MS + 10, INSTANCE, "accepted\n")


def unconfirmed(run_id: RunId) -> Unconfirmed:
    return Unconfirmed(run_id, NOW_MS + 20, NOW_MS + 10_020, "no answer\n")


def rejected(run_id: RunId, outcome: Outcome = Outcome.FAILED, code: int = 500) -> Unsent:
    return Unsent(run_id, NOW_MS + 30, code, outcome, "rejected\n")


def result(run_id: RunId, code: int = 200, outcome: Outcome = Outcome.SUCCEEDED, message: str = "done") -> Settlement:
    return Settlement(run_id, ENDED_MS, code, outcome, message)


async def test_accepted_and_settled(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node, job_id=3)
    assert (await store.apply(node, accepted(run_id))).ended == []
    row = await store.run_row(run_id)
    assert (row["phase"], row["owner"], row["accepted_ms"], row["instance_id"]) == (
        "accepted",
        None,
        NOW_MS + 10,
        INSTANCE,
    )
    assert (row["trigger_code"], row["handle_code"]) == (0, 0)
    applied = await store.apply(node, result(run_id))
    assert applied.ended == [Ended(run_id, JobId(3), Outcome.SUCCEEDED, ENDED_MS)]
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["trigger_code"], row["handle_code"]) == (None, "succeeded", 200, 200)
    assert (row["handle_msg"], row["trigger_msg"], row["ended_ms"]) == ("done", "accepted\n", ENDED_MS)
    assert row["handle_time"].isoformat() == "2026-11-27T10:30:01"
    assert row["alarm_status"] == 0


@pytest.mark.parametrize(
    ("code", "outcome"), [(500, Outcome.FAILED), (502, Outcome.TIMED_OUT), (-1, Outcome.FAILED), (7, Outcome.FAILED)]
)
async def test_a_failure_is_written_with_its_alarm_taken(store: Store, code: int, outcome: Outcome) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, result(run_id, code, outcome))
    row = await store.run_row(run_id)
    assert (row["trigger_code"], row["handle_code"], row["outcome"]) == (200, code, outcome)
    assert row["alarm_status"] != 0


async def test_a_result_before_the_answer_stands_and_the_answer_adds_its_message(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, result(run_id))
    await store.apply(node, accepted(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["handle_code"]) == (None, "succeeded", 200)
    assert (row["trigger_msg"], row["accepted_ms"], row["owner"], row["check_ms"]) == (
        "accepted\n",
        NOW_MS + 10,
        None,
        None,
    )


async def test_a_result_before_the_lost_answer_stands_and_keeps_how_it_was_sent(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, result(run_id))
    await store.apply(node, unconfirmed(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["check_ms"]) == (None, "succeeded", None)
    assert row["trigger_msg"] == "no answer\n"


async def test_an_answer_and_a_result_in_one_batch(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, result(run_id), accepted(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["trigger_msg"]) == (None, "succeeded", "accepted\n")
    assert row["accepted_ms"] == NOW_MS + 10


async def test_the_first_result_wins_and_repeats_end_nothing(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    first = await store.apply(node, result(run_id, 500, Outcome.FAILED, "first"), result(run_id, 200, message="second"))
    assert [each.outcome for each in first.ended] == [Outcome.FAILED]
    assert (await store.apply(node, result(run_id))).ended == []
    row = await store.run_row(run_id)
    assert (row["outcome"], row["handle_code"], row["handle_msg"]) == ("failed", 500, "first")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
async def test_any_order_of_no_answer_late_yes_and_result_ends_the_same(store: Store, order: tuple[int, ...]) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    writes: list[RunWrite] = [unconfirmed(run_id), accepted(run_id), result(run_id)]
    for index in order:
        await store.apply(node, writes[index])
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["owner"], row["check_ms"]) == (None, "succeeded", None, None)
    assert (row["trigger_code"], row["handle_code"]) == (200, 200)


@pytest.mark.parametrize(
    ("write", "phase", "outcome"),
    [(unconfirmed, "unconfirmed", None), (rejected, None, "failed"), (accepted, "accepted", None)],
)
async def test_another_node_cannot_write_what_became_of_a_run_being_sent(
    store: Store, write: object, phase: str, outcome: str
) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(OTHER, write(run_id))  # type: ignore[operator]
    assert (await store.run_row(run_id))["phase"] == "sending"
    await store.apply(node, write(run_id))  # type: ignore[operator]
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"]) == (phase, outcome)


async def test_what_became_of_a_send_ends_only_what_its_owner_is_sending_still(store: Store) -> None:
    """Its heir may have sent it since, and the executor taken it."""
    node = await store.node()
    others, adopted, own = [await store.sending(owner) for owner in (OTHER, node, node)]
    await store.apply(node, unconfirmed(adopted))
    late = [msgspec.structs.replace(rejected(run_id), owner=node) for run_id in (others, adopted, own)]
    # Also by the id that a node has after it was declared dead.
    assert [each.run_id for each in (await store.apply(NodeId(99), *late)).ended] == [own]
    rows = [await store.run_row(run_id) for run_id in (others, adopted, own)]
    assert [(row["phase"], row["outcome"]) for row in rows] == [
        ("sending", None),
        ("unconfirmed", None),
        (None, "failed"),
    ]


@pytest.mark.parametrize("write", [accepted, unconfirmed, rejected, result])
async def test_a_pending_run_is_moved_by_take_off_alone(store: Store, write: object) -> None:
    node = await store.node()
    run_id = (await store.pending(node))[0].id
    assert (await store.apply(node, write(run_id))).ended == []  # type: ignore[operator]
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["trigger_code"], row["trigger_msg"]) == ("pending", None, 0, None)


async def test_a_refused_run_is_failed_with_the_answers_code(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    assert (await store.apply(node, rejected(run_id, Outcome.DISCARDED, 501))).ended
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["trigger_code"], row["handle_code"]) == (None, "discarded", 501, 0)
    assert (row["trigger_msg"], row["ended_ms"], row["owner"]) == ("rejected\n", NOW_MS + 30, None)
    assert row["alarm_status"] != 0


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.DISCARDED])
async def test_a_result_does_not_replace_a_refusal(store: Store, outcome: Outcome) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, rejected(run_id, outcome))
    assert (await store.apply(node, result(run_id))).ended == []
    assert (await store.run_row(run_id))["outcome"] == outcome


async def test_a_real_result_replaces_lost(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, rejected(run_id, Outcome.LOST))
    row = await store.run_row(run_id)
    assert (row["trigger_code"], row["handle_code"], row["outcome"]) == (500, 0, "lost")
    await store.apply(node, accepted(run_id))
    assert (await store.run_row(run_id))["outcome"] == "lost"
    assert (await store.apply(node, result(run_id))).ended
    row = await store.run_row(run_id)
    assert (row["trigger_code"], row["handle_code"], row["outcome"]) == (200, 200, "succeeded")
    assert (await store.apply(node, result(run_id, 500, Outcome.FAILED))).ended == []


async def test_a_refusal_in_the_batch_of_a_result_comes_first_and_the_lost_run_is_replaced(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, unconfirmed(run_id))
    applied = await store.apply(node, result(run_id), rejected(run_id, Outcome.LOST))
    assert [each.outcome for each in applied.ended] == [Outcome.LOST, Outcome.SUCCEEDED]
    assert (await store.run_row(run_id))["outcome"] == "succeeded"


async def test_results_with_a_groups_credentials_settle_runs_of_that_group_alone(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    foreign = Settlement(run_id, ENDED_MS, 200, Outcome.SUCCEEDED, "", GroupId(2))
    assert (await store.apply(node, foreign)).ended == []
    own = Settlement(run_id, ENDED_MS, 200, Outcome.SUCCEEDED, "", GroupId(1))
    assert (await store.apply(node, own)).ended


async def test_of_two_results_for_a_run_in_one_batch_the_first_that_may_settle_it_wins(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    foreign = Settlement(run_id, ENDED_MS, 500, Outcome.FAILED, "foreign", GroupId(2))
    own = Settlement(run_id, ENDED_MS, 200, Outcome.SUCCEEDED, "own", GroupId(1))
    late = Settlement(run_id, ENDED_MS, 500, Outcome.FAILED, "late", GroupId(1))
    assert [each.outcome for each in (await store.apply(node, foreign, own, late)).ended] == [Outcome.SUCCEEDED]
    assert (await store.run_row(run_id))["handle_msg"] == "own"


@pytest.mark.parametrize(
    ("trigger_code", "handle_code", "settles"), [(0, 0, True), (200, 0, True), (500, 0, False), (200, 500, False)]
)
async def test_a_java_admins_running_row_is_settled(
    store: Store, trigger_code: int, handle_code: int, settles: bool
) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.change_run(
        run_id, phase=None, outcome=None, owner=None, trigger_code=trigger_code, handle_code=handle_code
    )
    assert bool((await store.apply(node, result(run_id))).ended) is settles


async def test_writes_of_unknown_runs_do_nothing(store: Store) -> None:
    node = await store.node()
    ghost = RunId(4711)
    applied = await store.apply(node, accepted(ghost), unconfirmed(ghost), rejected(ghost), result(ghost))
    assert applied.ended == []
    assert not applied.rescheduled


async def test_messages_are_stored_character_for_character(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    message = "quote ' \" back\\slash \f tab\t %s \N{ROCKET} 账\r\n"
    await store.apply(node, result(run_id, message=message))
    assert (await store.run_row(run_id))["handle_msg"] == message


async def _fix_delay(store: Store, **columns: object) -> JobId:
    wanted = {"schedule_type": "FIX_DELAY", "schedule_conf": "7", "trigger_next_time": AWAITING_SETTLEMENT_MS}
    return await store.job(**{**wanted, **columns})


async def _next_ms(store: Store, job_id: JobId) -> int:
    return int((await store.job_row(job_id))["trigger_next_time"])


async def test_fix_delay_waits_for_the_last_open_run_and_counts_from_its_end(store: Store) -> None:
    node = await store.node()
    job_id = await _fix_delay(store)
    first, manual = await store.sending(node, job_id), await store.sending(node, job_id)
    assert not (await store.apply(node, result(first))).rescheduled
    assert await _next_ms(store, job_id) == AWAITING_SETTLEMENT_MS
    last = Settlement(manual, ENDED_MS + 5000, 500, Outcome.FAILED, "")
    assert (await store.apply(node, last)).rescheduled
    assert await _next_ms(store, job_id) == ENDED_MS + 5000 + 7000


async def test_fix_delay_counts_from_its_own_runs_end_not_from_anothers_of_the_batch(store: Store) -> None:
    node = await store.node()
    job_id, other_id = await _fix_delay(store), await _fix_delay(store)
    mine, others = await store.sending(node, job_id), await store.sending(node, other_id)
    later = Settlement(others, ENDED_MS + 60_000, 200, Outcome.SUCCEEDED, "")
    await store.apply(node, result(mine), later)
    assert await _next_ms(store, job_id) == ENDED_MS + 7000
    assert await _next_ms(store, other_id) == ENDED_MS + 67_000


async def test_a_failed_dispatch_ends_a_fix_delay_run_as_well(store: Store) -> None:
    node = await store.node()
    job_id = await _fix_delay(store)
    run_id = await store.sending(node, job_id)
    assert (await store.apply(node, rejected(run_id))).rescheduled
    assert await _next_ms(store, job_id) == NOW_MS + 30 + 7000


async def test_an_unconfirmed_run_is_open(store: Store) -> None:
    node = await store.node()
    job_id = await _fix_delay(store)
    run_id = await store.sending(node, job_id)
    assert not (await store.apply(node, unconfirmed(run_id))).rescheduled
    assert await _next_ms(store, job_id) == AWAITING_SETTLEMENT_MS


@pytest.mark.parametrize(
    "columns",
    [{"trigger_status": 0}, {"trigger_next_time": NOW_MS + 1}, {"schedule_type": "FIX_RATE"}],
    ids=["stopped", "has a time", "another type"],
)
async def test_only_a_running_fix_delay_job_that_waits_gets_a_time(store: Store, columns: dict[str, object]) -> None:
    node = await store.node()
    job_id = await _fix_delay(store, **columns)
    before = await _next_ms(store, job_id)
    run_id = await store.sending(node, job_id)
    assert not (await store.apply(node, result(run_id))).rescheduled
    assert await _next_ms(store, job_id) == before


async def test_a_result_that_replaces_lost_does_not_move_a_fix_delay_job_again(store: Store) -> None:
    node = await store.node()
    job_id = await _fix_delay(store)
    run_id = await store.sending(node, job_id)
    await store.apply(node, rejected(run_id, Outcome.LOST))
    next_ms = await _next_ms(store, job_id)
    assert not (await store.apply(node, result(run_id))).rescheduled
    assert await _next_ms(store, job_id) == next_ms


async def test_due_unconfirmed_runs_come_in_order_and_are_taken_once(store: Store) -> None:
    node = await store.node()
    late, early, far = [await store.sending(node, instance_id=INSTANCE) for _ in range(3)]
    for run_id, check_ms in ((late, NOW_MS + 2), (early, NOW_MS + 1), (far, NOW_MS + 900)):
        await store.apply(node, Unconfirmed(run_id, NOW_MS, check_ms, ""))
    due = await store.database.read(checks.due_checks, NOW_MS + 2, 10)
    assert [run.id for run in due] == [early, late]
    assert [run.id for run in await store.database.read(checks.due_checks, NOW_MS + 2, 1)] == [early]
    assert (due[0].address, due[0].instance_id, due[0].handler, due[0].parameter) == (
        "http://10.0.0.7:9999/",
        INSTANCE,
        "settle",
        "day=1",
    )
    moves = [CheckLater(run.id, run.check_ms, NOW_MS + 500) for run in due]
    assert await store.database.write(checks.check_later, moves) == {early, late}
    assert await store.database.write(checks.check_later, moves) == set()
    assert await store.database.read(checks.due_checks, NOW_MS + 2, 10) == []


async def test_a_look_ends_with_the_phase(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, unconfirmed(run_id))
    run = (await store.database.read(checks.due_checks, NOW_MS + 99_999, 10))[0]
    await store.apply(node, result(run_id))
    assert await store.database.read(checks.due_checks, NOW_MS + 99_999, 10) == []
    move = CheckLater(run_id, run.check_ms, NOW_MS + 500)
    assert await store.database.write(checks.check_later, [move]) == set()
    await store.database.write(checks.note_heard, [run_id], NOW_MS + 70_000, 2)
    assert (await store.run_row(run_id))["idle_answers"] == 0


async def test_what_is_heard_of_an_unconfirmed_run_is_noted(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, unconfirmed(run_id))
    await store.database.write(checks.note_heard, [run_id], NOW_MS + 70_000, 2)
    run = (await store.database.read(checks.due_checks, NOW_MS + 99_999, 10))[0]
    assert (run.unheard_ms, run.idle_answers) == (NOW_MS + 70_000, 2)


async def test_own_runs_that_are_being_sent_for_too_long(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.sending(OTHER)
    pending = (await store.pending(node))[0].id
    await store.change_run(pending, sent_ms=NOW_MS - 1)
    assert await store.database.read(run_log.sending_since, node, NOW_MS + 1, 10) == [
        SendingRun(run_id, ADDRESS, NOW_MS)
    ]
    assert await store.database.read(run_log.sending_since, node, NOW_MS, 10) == []


async def test_an_unconfirmed_run_moves_from_the_address_it_has(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node, instance_id=INSTANCE)
    there = take_off(run_id, None, "http://10.0.0.8:9999/")

    async def move() -> bool:
        return await store.database.write(checks.move_unconfirmed, there, ADDRESS, NOW_MS + 50, NOW_MS + 60_050)

    assert not await move()
    await store.apply(node, unconfirmed(run_id))
    await store.database.write(checks.note_heard, [run_id], NOW_MS, 2)
    assert await move()
    assert not await move()
    row = await store.run_row(run_id)
    assert (row["executor_address"], row["instance_id"], row["idle_answers"]) == (there.address, None, 0)
    assert (row["phase"], row["unheard_ms"], row["check_ms"]) == ("unconfirmed", NOW_MS + 50, NOW_MS + 60_050)


async def test_only_an_own_run_being_sent_is_taken_back(store: Store) -> None:
    node = await store.node()
    mine, foreign, accepted_run = await store.sending(node), await store.sending(OTHER), await store.sending(node)
    await store.apply(node, accepted(accepted_run))
    wanted = [TakeBack(each, node, NOW_MS) for each in (mine, foreign, accepted_run)]
    assert await store.database.write(run_log.take_back, wanted) == 1
    row = await store.run_row(mine)
    assert (row["phase"], row["owner"], row["executor_address"], row["sent_ms"]) == ("pending", node, None, None)
    assert (await store.run_row(foreign))["phase"] == "sending"
    assert (await store.run_row(accepted_run))["phase"] == "accepted"


async def test_a_run_that_took_off_anew_is_not_taken_back(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    take_back = [TakeBack(run_id, node, NOW_MS)]
    assert await store.database.write(run_log.take_back, take_back) == 1
    assert await store.database.write(run_log.take_back, take_back) == 0
    assert await store.database.write(run_log.take_off, node, NOW_MS + 1, [take_off(run_id)]) == {run_id}
    assert await store.database.write(run_log.take_back, take_back) == 0
    assert (await store.run_row(run_id))["phase"] == "sending"
