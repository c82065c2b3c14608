"""Accepted runs that nobody answers for, and runs that somebody wants to end, on each kind of database."""

from collections.abc import Callable, Sequence

import msgspec
import pytest

from jobwheel.admin.domain.ids import JobId, NodeId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import (
    Accepted,
    Cancelled,
    Ended,
    RunWrite,
    Settlement,
    TakeBack,
    Unanswered,
    Unconfirmed,
    Unsent,
)
from jobwheel.admin.store import checks, kills, nodes, run_list, run_log
from jobwheel.admin.store.checks import CheckLater
from jobwheel.admin.store.followups import late_line
from jobwheel.admin.store.kills import Holder
from jobwheel.admin.store.limits import WAITING
from jobwheel.schedule import Language
from tests.support.store import ADDRESS, FIRST_LOOKS, INSTANCE, NOW_MS, Store, take_off

Write = Callable[[RunId], RunWrite]

OTHER = NodeId(2**40)
HEARD_MS, LOOK_MS, KILL_MS, ENDED_MS = NOW_MS + 11, NOW_MS + 120_011, NOW_MS + 300, NOW_MS + 900


def accepted(run_id: RunId) -> Accepted:
    return Accepted(run_id, NOW_MS + 10, INSTANCE, "accepted\n", HEARD_MS, LOOK_MS)


def unconfirmed(run_id: RunId) -> Unconfirmed:
    return Unconfirmed(run_id, NOW_MS + 20, NOW_MS + 10_020, "no answer\n")


def unanswered(run_id: RunId) -> Unanswered:
    return Unanswered(run_id, ENDED_MS, "nobody is there")


def cancelled(run_id: RunId) -> Cancelled:
    return Cancelled(run_id, ENDED_MS, "killed before it was sent")


def result(run_id: RunId, code: int = 200) -> Settlement:
    outcome = Outcome.SUCCEEDED if code == 200 else Outcome.FAILED
    return Settlement(run_id, ENDED_MS, code, outcome, "done")


async def ask_kill(store: Store, *run_ids: RunId) -> None:
    await store.database.write(kills.ask_kill, run_ids, KILL_MS, "kill: ada\n")


async def looks_due(store: Store, now_ms: int = NOW_MS + 10**7) -> Sequence[RunId]:
    return [run.id for run in await store.database.read(checks.due_checks, now_ms, 10)]


async def test_an_accepted_run_is_looked_at_if_there_is_no_result(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, unconfirmed(run_id))
    await store.database.write(checks.note_heard, [run_id], NOW_MS + 70, 2)
    await store.apply(node, accepted(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["check_ms"], row["unheard_ms"], row["idle_answers"]) == ("accepted", LOOK_MS, HEARD_MS, 0)
    assert await looks_due(store, LOOK_MS - 1) == []
    (run,) = await store.database.read(checks.due_checks, LOOK_MS, 10)
    assert (run.id, run.phase, run.unheard_ms, run.kill_ms, run.instance_id) == (
        run_id,
        "accepted",
        HEARD_MS,
        None,
        INSTANCE,
    )
    await store.apply(node, result(run_id))
    assert (await store.run_row(run_id))["check_ms"] is None


@pytest.mark.parametrize("in_one_batch", [True, False])
async def test_a_run_that_is_settled_is_never_looked_at(store: Store, in_one_batch: bool) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    if in_one_batch:
        await store.apply(node, accepted(run_id), result(run_id))
    else:
        await store.apply(node, result(run_id))
        await store.apply(node, accepted(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["check_ms"]) == (None, "succeeded", None)


@pytest.mark.parametrize("before", [accepted, unconfirmed])
async def test_a_run_without_an_answer_is_lost_and_a_late_result_replaces_that(store: Store, before: Write) -> None:
    node = await store.node()
    run_id = await store.sending(node, job_id=3)
    await store.apply(node, before(run_id))
    applied = await store.apply(OTHER, unanswered(run_id), unanswered(run_id))
    assert applied.ended == [Ended(run_id, JobId(3), Outcome.LOST, ENDED_MS)]
    row = await store.run_row(run_id)
    assert (row["phase"], row["outcome"], row["trigger_code"], row["handle_code"]) == (None, "lost", 200, 500)
    assert (row["handle_msg"], row["ended_ms"], row["check_ms"]) == ("nobody is there", ENDED_MS, None)
    assert row["handle_time"].isoformat() == "2026-11-27T10:30:01"
    await store.apply(node, result(run_id))
    row = await store.run_row(run_id)
    assert (row["outcome"], row["trigger_code"], row["handle_code"], row["handle_msg"]) == (
        "succeeded",
        200,
        200,
        "done",
    )
    assert row["trigger_msg"].endswith(f"nobody is there\n{late_line(Language.EN)}")


@pytest.mark.parametrize("code", [200, 500])
@pytest.mark.parametrize("language", Language)
async def test_a_late_result_keeps_what_was_said_when_the_run_was_lost(
    store: Store, code: int, language: Language
) -> None:
    """The line that a retry was started went with the message that the result takes the place of."""
    node = await store.node()
    run_id = await store.sending(node, job_id=await store.job(executor_fail_retry_count=1))
    await store.apply(node, accepted(run_id))
    (retry,) = (await store.apply(node, unanswered(run_id))).pending
    other = await store.sending(node)
    for _ in range(2):
        batch = [result(run_id, code), result(other)]
        await store.database.write(run_log.apply, store.zone, node, batch, language)
    row = await store.run_row(run_id)
    assert row["handle_msg"] == "done"
    assert row["trigger_msg"] == (
        f"accepted\nnobody is there\n\u2192 tried again at once: run {retry.id}\n{late_line(language)}"
    )
    assert not (await store.run_row(other))["trigger_msg"]


async def test_a_late_result_of_a_run_that_was_lost_unsent_is_told_too(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, Unsent(run_id, ENDED_MS, 500, Outcome.LOST, "another process\n"))
    await store.apply(node, msgspec.structs.replace(result(run_id), accepted=accepted(run_id)))
    row = await store.run_row(run_id)
    assert row["trigger_msg"] == f"another process\n{late_line(Language.EN)}accepted\n"


async def test_the_longest_dispatch_message_lets_a_late_result_in(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, accepted(run_id), unanswered(run_id))
    await store.change_run(run_id, trigger_msg="\U0001f600" * 15_990)
    await store.apply(node, result(run_id))
    assert (await store.run_row(run_id))["outcome"] == "succeeded"


async def test_a_result_in_the_same_batch_wins_over_lost(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, accepted(run_id))
    applied = await store.apply(node, unanswered(run_id), result(run_id))
    assert [each.outcome for each in applied.ended] == [Outcome.SUCCEEDED]


async def test_only_a_run_that_an_executor_may_have_is_lost(store: Store) -> None:
    node = await store.node()
    pending = (await store.pending(node))[0].id
    sending, done = await store.sending(node), await store.sending(node)
    # A Java admin's: it has no phase, and its codes say that it runs.
    java = (await store.pending(node))[0].id
    await store.change_run(java, phase=None, owner=None, trigger_code=200)
    await store.apply(node, accepted(done), result(done))
    applied = await store.apply(node, *(unanswered(each) for each in (pending, sending, done, java)))
    assert applied.ended == []
    assert (await store.run_row(java))["handle_code"] == 0
    assert java not in await looks_due(store)


async def test_lost_runs_make_room_and_give_a_fix_delay_job_its_next_time(store: Store) -> None:
    node = await store.node()
    delayed = await store.job(schedule_type="FIX_DELAY", schedule_conf="7", trigger_next_time=AWAITING_SETTLEMENT_MS)
    limited = await store.job(run_limit=1)
    runs = [await store.sending(node, job_id) for job_id in (delayed, limited)]
    waiter = (await store.pending(WAITING, job_id=limited))[0].id
    await store.apply(node, *(accepted(run_id) for run_id in runs))
    applied = await store.apply(node, *(unanswered(run_id) for run_id in runs))
    assert (applied.rescheduled, applied.called) == (True, True)
    assert (await store.run_row(waiter))["owner"] == node
    assert (await store.job_row(delayed))["trigger_next_time"] == ENDED_MS + 7_000


async def test_looks_are_taken_once(store: Store) -> None:
    node = await store.node()
    runs = [await store.sending(node) for _ in range(3)]
    await store.apply(node, accepted(runs[0]), accepted(runs[1]), unconfirmed(runs[2]))
    due = await store.database.read(checks.due_checks, LOOK_MS, 10)
    assert [run.id for run in due] == [runs[2], runs[0], runs[1]]
    moves = [CheckLater(run.id, run.check_ms, LOOK_MS + 1 + index) for index, run in enumerate(due)]
    await store.change_run(runs[1], check_ms=LOOK_MS - 5)
    assert await store.database.write(checks.check_later, moves) == {runs[0], runs[2]}
    assert [(await store.run_row(run_id))["check_ms"] for run_id in runs] == [LOOK_MS + 2, LOOK_MS - 5, LOOK_MS + 1]


async def test_a_pending_run_that_is_to_be_killed_never_takes_off(store: Store) -> None:
    node = await store.node()
    mine, foreign = (await store.pending(node))[0].id, (await store.pending(OTHER))[0].id
    free = (await store.pending(node))[0].id
    await ask_kill(store, mine, foreign)
    taken = await store.database.write(run_log.take_off, node, NOW_MS, [take_off(mine), take_off(free)])
    assert taken == {free}
    assert set(await looks_due(store)) == {mine, foreign}
    applied = await store.apply(node, cancelled(mine), cancelled(foreign), cancelled(free))
    assert {(each.run_id, each.outcome) for each in applied.ended} == {
        (mine, Outcome.KILLED),
        (foreign, Outcome.KILLED),
    }
    row = await store.run_row(foreign)
    assert (row["phase"], row["outcome"], row["trigger_code"], row["handle_code"]) == (None, "killed", 0, 500)
    assert (row["handle_msg"], row["trigger_msg"], row["owner"], row["check_ms"]) == (
        "killed before it was sent",
        "kill: ada\n",
        None,
        None,
    )


async def test_a_run_is_cancelled_only_if_a_kill_was_asked_for(store: Store) -> None:
    node = await store.node()
    pending = (await store.pending(node))[0].id
    sending, foreign, there = await store.sending(node), await store.sending(OTHER), await store.sending(node)
    await store.apply(node, accepted(there))
    await ask_kill(store, foreign, there)
    assert (await store.apply(node, *(cancelled(each) for each in (pending, sending, foreign, there)))).ended == []


async def test_a_run_being_sent_goes_to_no_other_address_and_ends_as_killed(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await ask_kill(store, run_id)
    assert (await store.run_row(run_id))["check_ms"] is None
    move = (take_off(run_id, None, "http://10.0.0.8:9999/"), ADDRESS)
    assert await store.database.write(run_log.redirect, node, [move]) == set()
    assert [each.outcome for each in (await store.apply(node, cancelled(run_id))).ended] == [Outcome.KILLED]
    assert (await store.run_row(run_id))["trigger_code"] == 0


@pytest.mark.parametrize(("answer", "phase"), [(accepted, "accepted"), (unconfirmed, "unconfirmed")])
async def test_a_run_being_sent_is_looked_at_once_it_is_answered(store: Store, answer: Write, phase: str) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await ask_kill(store, run_id)
    await store.apply(node, answer(run_id))
    row = await store.run_row(run_id)
    assert (row["phase"], row["check_ms"], row["kill_ms"]) == (phase, KILL_MS, KILL_MS)
    assert row["trigger_msg"].startswith("kill: ada\n")
    applied = await store.apply(node, unanswered(run_id))
    assert [each.outcome for each in applied.ended] == [Outcome.KILLED]
    row = await store.run_row(run_id)
    assert (row["outcome"], row["trigger_code"], row["handle_code"]) == ("killed", 200, 500)


async def test_a_run_that_is_to_be_killed_and_nobody_takes_is_killed_not_failed(store: Store) -> None:
    node = await store.node()
    killed, failed = await store.sending(node), await store.sending(node)
    await ask_kill(store, killed)
    rejections: list[RunWrite] = [Unsent(each, ENDED_MS, 500, Outcome.FAILED, "refused\n") for each in (killed, failed)]
    applied = await store.apply(node, *rejections)
    assert {(each.run_id, each.outcome) for each in applied.ended} == {
        (killed, Outcome.KILLED),
        (failed, Outcome.FAILED),
    }
    row = await store.run_row(killed)
    assert (row["outcome"], row["trigger_code"], row["handle_code"]) == ("killed", 0, 500)
    row = await store.run_row(failed)
    assert (row["outcome"], row["trigger_code"], row["handle_code"]) == ("failed", 500, 0)


async def test_a_run_that_is_taken_back_or_adopted_is_still_to_be_killed(store: Store) -> None:
    node = await store.node()
    taken, unsent, doubted = [await store.sending(node) for _ in range(3)]
    await ask_kill(store, taken, unsent, doubted)
    assert await store.database.write(run_log.take_back, [TakeBack(taken, node, NOW_MS)]) == 1
    await store.change_run(unsent, executor_address="")
    await store.database.write(nodes.adopt_all, OTHER, NOW_MS + 400, FIRST_LOOKS)
    states = [await store.run_row(run_id) for run_id in (taken, unsent, doubted)]
    assert [(row["phase"], row["check_ms"]) for row in states] == [
        ("pending", KILL_MS),
        ("pending", KILL_MS),
        ("unconfirmed", KILL_MS),
    ]


async def test_a_clock_that_was_set_back_hides_no_accepted_run(store: Store) -> None:
    node = await store.node()
    far, near = await store.sending(node), await store.sending(node)
    await store.apply(node, accepted(far), accepted(near))
    await store.change_run(far, check_ms=NOW_MS + 10**8, unheard_ms=NOW_MS + 10**8)
    await store.database.write(nodes.adopt_all, OTHER, NOW_MS, FIRST_LOOKS)
    row = await store.run_row(far)
    assert (row["check_ms"], row["unheard_ms"]) == (NOW_MS, NOW_MS)
    assert (await store.run_row(near))["check_ms"] == LOOK_MS


async def test_a_kill_is_asked_for_once_and_an_unconfirmed_run_moves_no_more(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await store.apply(node, unconfirmed(run_id))
    await ask_kill(store, run_id)
    await store.database.write(kills.ask_kill, [run_id], KILL_MS + 1, "kill: bob\n")
    row = await store.run_row(run_id)
    assert (row["kill_ms"], row["check_ms"], row["trigger_msg"]) == (KILL_MS, KILL_MS, "no answer\nkill: ada\n")
    there = take_off(run_id, None, "http://10.0.0.8:9999/")
    assert not await store.database.write(checks.move_unconfirmed, there, ADDRESS, NOW_MS, NOW_MS)


async def test_what_an_executor_said_of_a_kill_is_noted_while_the_run_is_open(store: Store) -> None:
    node = await store.node()
    run_id, done = await store.sending(node), await store.sending(node)
    await store.apply(node, accepted(run_id), accepted(done), result(done))
    for each in (run_id, done):
        await store.database.write(checks.note_kill_told, each, "told\n", KILL_MS + 60_000)
    row = await store.run_row(run_id)
    assert (row["trigger_msg"], row["check_ms"]) == ("accepted\ntold\n", KILL_MS + 60_000)
    assert (await store.run_row(done))["trigger_msg"] == "accepted\n"


async def test_a_late_answer_without_a_result_keeps_how_a_killed_run_was_sent(store: Store) -> None:
    node = await store.node()
    run_id = await store.sending(node)
    await ask_kill(store, run_id)
    await store.apply(node, result(run_id, 500))
    await store.apply(node, unconfirmed(run_id))
    assert (await store.run_row(run_id))["trigger_msg"] == "kill: ada\nno answer\n"


async def test_the_open_runs_of_a_job_and_who_has_them(store: Store) -> None:
    node, job_id = await store.node(), await store.job()
    assert await store.database.read(kills.last_open_run, job_id) is None
    pending = (await store.pending(node, job_id=job_id))[0].id
    ours, other = await store.sending(node, job_id, INSTANCE), await store.sending(node, job_id)
    asked, done = await store.sending(node, job_id, "asked"), await store.sending(node, job_id)
    await store.sending(node, job_id + 1)
    await ask_kill(store, asked)
    await store.apply(node, result(done))
    assert await store.database.read(kills.last_open_run, job_id) == asked
    found = await store.database.read(kills.open_to_kill, job_id, asked, 10)
    assert sorted(found) == [pending, ours, other]
    assert len(await store.database.read(kills.open_to_kill, job_id, asked, 2)) == 2
    assert await store.database.read(kills.open_to_kill, job_id, pending, 10) == [pending]
    holders = await store.database.read(kills.holders, job_id)
    assert holders == {Holder(each, ADDRESS, instance) for each in (1,) for instance in (INSTANCE, None)}  # type: ignore[arg-type]
    held = await store.database.write(run_list.hold_runs, [other, ours])
    assert [run.id for run in held] == [ours, other]
    assert [kills.holder_of(run) is None for run in held] == [False, False]
