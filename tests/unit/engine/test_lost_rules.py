"""What becomes of an accepted run without a result, by what is known of where it was sent."""

from dataclasses import replace

import pytest

from jobwheel.admin.domain.group import ExecutorLoad, Registration
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Phase, TriggerType
from jobwheel.admin.engine.executor_client import Statuses
from jobwheel.admin.engine.lost_rules import Verdict, Whereabouts, judge_other, judge_ours
from jobwheel.admin.engine.rules import (
    ASKED_EVERY_MS,
    KILL_AGAIN_MS,
    KILL_END_MS,
    QUESTION_EVERY_MS,
    SILENT_MS,
    UNHEARD_END_MS,
    first_look_ms,
    next_kill_ms,
    next_look_ms,
)
from jobwheel.admin.store.checks import OpenRun
from jobwheel.wire.messages import RunStatus
from tests.support.engine_parts import NOW_MS

ME, HEIR = "me", "heir"
ADDRESS = "http://10.0.0.7:9999/"
RUN = OpenRun(
    id=RunId(7),
    job_id=JobId(1),
    group_id=GroupId(1),
    trigger_type=TriggerType.CRON,
    planned_ms=NOW_MS,
    triggered_ms=NOW_MS,
    parameter="",
    attempt=1,
    address=ADDRESS,
    handler="settle",
    instance_id=ME,
    phase=Phase.ACCEPTED,
    unheard_ms=NOW_MS,
    check_ms=NOW_MS + SILENT_MS,
    kill_ms=None,
    idle_answers=0,
    is_named=False,
    shard=None,
)


def there(instance_id: str | None, spooled: int = 0) -> Registration:
    return Registration("orders", ADDRESS, NOW_MS, instance_id, load=ExecutorLoad(spooled=spooled))


def where(there: Registration | None = None, silent_ms: int = SILENT_MS, **fields: bool) -> Whereabouts:
    return Whereabouts(silent_ms, fields.get("is_fixed", False), there, fields.get("may_judge", True))


def said(status: RunStatus, by: str | None = ME) -> Statuses:
    return Statuses(by, {7: status})


@pytest.mark.parametrize("status", [RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.REPORTING])
@pytest.mark.parametrize("by", [ME, HEIR])
def test_who_has_the_run_or_its_result_is_heard(status: RunStatus, by: str) -> None:
    assert judge_ours(RUN, said(status, by), where(silent_ms=10 * UNHEARD_END_MS)) is Verdict.HEARD


def test_the_process_that_took_it_and_does_not_know_it_has_lost_it() -> None:
    assert judge_ours(RUN, said(RunStatus.UNKNOWN), where(may_judge=False, silent_ms=0)) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("beats", "verdict"),
    [
        (there(HEIR), Verdict.REPLACED),
        (there(HEIR, spooled=1), Verdict.WAITS),
        (there(ME), Verdict.WAITS),
        (None, Verdict.REPLACED),
    ],
)
def test_another_process_has_lost_it_unless_results_of_the_first_one_may_come(
    beats: Registration | None, verdict: Verdict
) -> None:
    assert judge_ours(RUN, said(RunStatus.UNKNOWN, HEIR), where(beats)) is verdict


@pytest.mark.parametrize("answer", [None, Statuses(ME, {})])
@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        (where(), Verdict.GONE),
        (where(silent_ms=SILENT_MS - 1), Verdict.WAITS),
        (where(may_judge=False, silent_ms=10 * UNHEARD_END_MS), Verdict.WAITS),
        (where(there(ME), silent_ms=10 * UNHEARD_END_MS), Verdict.WAITS),
        (where(there(HEIR)), Verdict.REPLACED),
        (where(there(None)), Verdict.REPLACED),
        (where(there(HEIR, spooled=1)), Verdict.WAITS),
        (where(is_fixed=True, silent_ms=UNHEARD_END_MS - 1), Verdict.WAITS),
        (where(is_fixed=True, silent_ms=UNHEARD_END_MS), Verdict.GONE),
    ],
)
def test_without_an_answer_it_is_lost_where_nobody_beats_or_another_process_does(
    answer: Statuses | None, place: Whereabouts, verdict: Verdict
) -> None:
    assert judge_ours(RUN, answer, place) is verdict


OTHER = replace(RUN, instance_id=None)


@pytest.mark.parametrize(
    ("idle", "before", "verdict"),
    [
        (False, 2, Verdict.HEARD),
        (True, 0, Verdict.HEARD),
        (True, 1, Verdict.HEARD),
        (True, 2, Verdict.IDLE),
    ],
)
def test_another_make_is_asked_three_times(idle: bool, before: int, verdict: Verdict) -> None:
    run = replace(OTHER, idle_answers=before)
    assert judge_other(run, idle, where(silent_ms=10 * UNHEARD_END_MS, may_judge=False)) is verdict


@pytest.mark.parametrize(
    ("place", "verdict"),
    [
        (where(silent_ms=UNHEARD_END_MS), Verdict.GONE),
        (where(silent_ms=UNHEARD_END_MS - 1), Verdict.WAITS),
        (where(there(None), silent_ms=10 * UNHEARD_END_MS), Verdict.WAITS),
        (where(silent_ms=10 * UNHEARD_END_MS, may_judge=False), Verdict.WAITS),
        (where(is_fixed=True, silent_ms=UNHEARD_END_MS + SILENT_MS - 1), Verdict.WAITS),
        (where(is_fixed=True, silent_ms=UNHEARD_END_MS + SILENT_MS), Verdict.GONE),
    ],
)
def test_another_make_that_does_not_answer_is_gone_after_long_silence_unless_it_beats(
    place: Whereabouts, verdict: Verdict
) -> None:
    assert judge_other(OTHER, None, place) is verdict


def test_when_an_accepted_run_is_looked_at() -> None:
    assert first_look_ms(NOW_MS) == NOW_MS + SILENT_MS
    later_ms = NOW_MS + SILENT_MS
    assert next_look_ms(NOW_MS, 0, later_ms, ours=True) == later_ms + ASKED_EVERY_MS
    assert next_look_ms(NOW_MS, 0, later_ms, ours=False) == NOW_MS + UNHEARD_END_MS
    assert next_look_ms(NOW_MS, 1, later_ms, ours=False) == later_ms + QUESTION_EVERY_MS
    end_ms = NOW_MS + UNHEARD_END_MS
    assert next_look_ms(NOW_MS, 0, end_ms, ours=False) == end_ms + QUESTION_EVERY_MS


def test_when_a_kill_is_told_again() -> None:
    assert next_kill_ms(NOW_MS, NOW_MS) == NOW_MS + KILL_AGAIN_MS
    assert next_kill_ms(NOW_MS, NOW_MS + KILL_END_MS - 1) == NOW_MS + KILL_END_MS
    assert next_kill_ms(NOW_MS, NOW_MS + KILL_END_MS) == NOW_MS + KILL_END_MS + KILL_AGAIN_MS
