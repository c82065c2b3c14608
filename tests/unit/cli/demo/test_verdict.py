from dataclasses import replace
from typing import Any

import pytest

from jobwheel.cli.demo.sample_jobs import WatchedJob
from jobwheel.cli.demo.verdict import Seen, SeenRun, Span, Verdict, judge, percentile
from jobwheel.schedule import parse_schedule

START = 1_795_746_600_000
EVERY_SECOND = WatchedJob(
    1, "every second", parse_schedule("CRON", "* * * * * ?", zone="UTC", anchor_ms=None), START + 1000, 1
)
AFTER_END = WatchedJob(2, "after its end", None, None, 1)


def _run(number: int, second: int, **changes: Any) -> SeenRun:
    planned_ms = START + second * 1000
    run = SeenRun(number, 1, planned_ms, planned_ms, planned_ms + 3, "succeeded", by_schedule=True)
    return replace(run, **changes)


def _judge(
    runs: list[SeenRun], *, misfires: list[Span] | None = None, executions: dict[int, int] | None = None
) -> Verdict:
    executed = {run.id: 1 for run in runs} if executions is None else executions
    return judge([EVERY_SECOND, AFTER_END], Seen(runs, {1: misfires or []}, executed, START + 5000))


WHOLE = [_run(second, second) for second in range(1, 6)]


def test_each_instant_once_is_clean() -> None:
    verdict = _judge(WHOLE)
    assert verdict == Verdict(
        planned=5,
        succeeded=5,
        failed=0,
        unfinished=0,
        misfired=0,
        missing=0,
        doubled=0,
        unplanned=0,
        runs=5,
        lateness_p50_ms=3,
        lateness_p99_ms=3,
    )
    assert verdict.clean


def test_an_instant_without_a_run_is_missing() -> None:
    verdict = _judge(WHOLE[:2] + WHOLE[3:])
    assert (verdict.planned, verdict.missing, verdict.succeeded) == (5, 1, 4)
    assert not verdict.clean


def test_the_last_instant_counts_and_the_next_does_not() -> None:
    assert _judge(WHOLE[:4]).missing == 1
    assert _judge([*WHOLE, _run(6, 6)]).unplanned == 1


def test_a_recorded_misfire_is_not_missing() -> None:
    verdict = _judge(WHOLE[:1] + WHOLE[4:], misfires=[Span(START + 2000, START + 3000)])
    assert (verdict.misfired, verdict.missing) == (2, 1)
    verdict = _judge(WHOLE[:1] + WHOLE[4:], misfires=[Span(START + 2000, START + 4000)])
    assert (verdict.misfired, verdict.missing) == (3, 0)
    assert verdict.clean


def test_two_runs_of_an_instant_are_doubled() -> None:
    verdict = _judge([*WHOLE, _run(9, 3)])
    assert (verdict.doubled, verdict.missing) == (1, 0)
    assert not verdict.clean


def test_a_run_that_was_executed_twice_is_doubled() -> None:
    verdict = _judge(WHOLE, executions={1: 1, 2: 2, 3: 1, 4: 1, 5: 1})
    assert verdict.doubled == 1
    assert not verdict.clean


def test_a_run_without_a_predictable_instant_can_be_doubled_too() -> None:
    verdict = _judge([*WHOLE, _run(9, 2, job_id=2)], executions={9: 2})
    assert (verdict.doubled, verdict.runs, verdict.planned) == (1, 6, 5)


def test_a_run_at_no_instant_is_unplanned() -> None:
    odd = _run(9, 3, planned_ms=START + 3500)
    verdict = _judge([*WHOLE, odd])
    assert (verdict.unplanned, verdict.doubled) == (1, 0)
    assert not verdict.clean


def test_runs_by_hand_do_not_stand_in_for_the_schedule() -> None:
    by_hand = _run(9, 3, by_schedule=False)
    assert _judge([*WHOLE, by_hand]).doubled == 0
    assert _judge([*WHOLE[:2], by_hand, *WHOLE[3:]]).missing == 1


def test_failed_and_unfinished_runs_are_runs() -> None:
    runs = [_run(1, 1), _run(2, 2, outcome="failed"), _run(3, 3, outcome=None), _run(4, 4, outcome="lost"), _run(5, 5)]
    verdict = _judge(runs)
    assert (verdict.succeeded, verdict.failed, verdict.unfinished, verdict.missing) == (2, 2, 1, 0)


def test_nothing_seen_proves_nothing() -> None:
    assert not judge([], Seen([], {}, {}, START)).clean
    assert not _judge([replace(run, outcome="failed") for run in WHOLE]).clean


def test_lateness_is_counted_from_the_due_time_of_what_was_sent() -> None:
    runs = [_run(1, 1, sent_ms=None), _run(2, 2, due_ms=START + 2500, sent_ms=START + 2600), *WHOLE[2:]]
    verdict = _judge(runs)
    assert (verdict.lateness_p50_ms, verdict.lateness_p99_ms) == (3, 100)


@pytest.mark.parametrize(("share", "value"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentile_is_the_nearest_rank(share: float, value: int) -> None:
    assert percentile(range(1, 101), share) == value
    assert percentile([], share) is None
    assert percentile([7], share) == 7
