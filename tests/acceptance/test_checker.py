"""The judge is judged first: it must see every kind of fault."""

from tests.support.checker import MisfireRecord, Start, judge

PLANNED = [(job_id, second * 1000) for job_id in (1, 2) for second in range(10)]
STARTS = [Start(job_id, n, planned_ms, planned_ms + 5) for n, (job_id, planned_ms) in enumerate(PLANNED)]


def without(*seconds: int) -> list[Start]:
    """The starts, but for these seconds of job 1."""
    return [start for start in STARTS if start.job_id != 1 or start.planned_ms // 1000 not in seconds]


def test_a_whole_log_is_good() -> None:
    verdict = judge(PLANNED, STARTS, [])
    assert verdict.good
    assert (verdict.executed, verdict.misfired) == (20, 0)


def test_a_lost_instant_is_seen() -> None:
    verdict = judge(PLANNED, without(4), [])
    assert (verdict.good, verdict.missing) == (False, [(1, 4000)])


def test_the_first_and_the_last_instant_count() -> None:
    assert judge(PLANNED, without(0, 9), []).missing == [(1, 0), (1, 9000)]


def test_an_instant_executed_twice_is_seen() -> None:
    verdict = judge(PLANNED, [*STARTS, Start(2, 99, 3000, 3100)], [])
    assert (verdict.good, verdict.doubled) == (False, [(2, 3000)])


def test_a_double_after_the_planned_time_is_seen_as_well() -> None:
    later = Start(2, 99, 20_000, 20_100)
    assert judge(PLANNED, [*STARTS, later], []).good
    assert judge(PLANNED, [*STARTS, later, later], []).doubled == [(2, 20_000)]


def test_recorded_misfires_excuse_their_instants_alone() -> None:
    misfire = MisfireRecord(1, 3, 4000, 6000)
    verdict = judge(PLANNED, without(4, 5, 6), [misfire])
    assert verdict.good
    assert (verdict.executed, verdict.misfired) == (17, 3)
    assert judge(PLANNED, without(4, 5, 6, 7), [misfire]).missing == [(1, 7000)]


def test_a_misfire_of_another_job_excuses_nothing() -> None:
    assert judge(PLANNED, without(4), [MisfireRecord(2, 1, 4000, 4000)]).missing == [(1, 4000)]


def test_an_instant_that_misfired_and_was_executed_is_seen() -> None:
    assert judge(PLANNED, without(4), [MisfireRecord(1, 2, 4000, 5000)]).doubled == [(1, 5000)]


def test_an_instant_that_misfired_twice_is_seen() -> None:
    misfire = MisfireRecord(1, 1, 4000, 4000)
    assert judge(PLANNED, without(4), [misfire, misfire]).doubled == [(1, 4000)]


def test_a_misfire_that_counts_wrongly_is_seen() -> None:
    misfire = MisfireRecord(1, 2, 4000, 6000)
    assert judge(PLANNED, without(4, 5, 6), [misfire]).miscounted == [misfire]


def test_what_nobody_planned_is_seen() -> None:
    assert judge(PLANNED, [*STARTS, Start(1, 99, 4500, 4600)], []).unplanned == [(1, 4500)]


def test_a_start_before_its_time_is_seen() -> None:
    early = [*without(4), Start(1, 99, 4000, 3999)]
    assert judge(PLANNED, early, []).early == [(1, 4000)]


def test_an_excused_instant_may_be_missing_and_not_doubled() -> None:
    assert judge(PLANNED, without(4), [], excused=[(1, 4000)]).good
    assert judge(PLANNED, [*STARTS, STARTS[4]], [], excused=[(1, 4000)]).doubled == [(1, 4000)]
