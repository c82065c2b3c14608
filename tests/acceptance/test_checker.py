"""The judge is judged first: it must see every kind of fault."""

from pathlib import Path

import pytest

from tests.support.checker import MisfireRecord, Start, Verdict, judge
from tests.support.report import BEGIN, END, main, record_verdict

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


def test_a_misfire_that_reaches_beyond_what_is_planned_is_not_counted_but_excuses() -> None:
    later = [each for each in PLANNED if each[1] >= 3000]
    starts = [each for each in without(3, 4) if each.planned_ms >= 3000]
    assert judge(later, starts, [MisfireRecord(1, 4, 1000, 4000)]).good
    assert judge(PLANNED, without(8, 9), [MisfireRecord(1, 4, 8000, 11_000)]).good


def test_what_nobody_planned_is_seen() -> None:
    assert judge(PLANNED, [*STARTS, Start(1, 99, 4500, 4600)], []).unplanned == [(1, 4500)]


def test_a_start_before_its_time_is_seen() -> None:
    early = [*without(4), Start(1, 99, 4000, 3999)]
    assert judge(PLANNED, early, []).early == [(1, 4000)]


def test_an_excused_instant_may_be_missing_and_not_doubled() -> None:
    assert judge(PLANNED, without(4), [], excused=[(1, 4000)]).good
    assert judge(PLANNED, [*STARTS, STARTS[4]], [], excused=[(1, 4000)]).doubled == [(1, 4000)]


def test_a_second_row_of_an_instant_is_seen_though_only_one_of_them_ran() -> None:
    rows = [*PLANNED, (1, 4000)]
    assert judge(PLANNED, STARTS, [], rows=PLANNED).good
    # The other one may have failed and say why: an excuse for having no execution, none for having been written.
    verdict = judge(PLANNED, STARTS, [], excused=[(1, 4000)], rows=rows)
    assert (verdict.good, verdict.doubled, verdict.rewritten) == (False, [], [(1, 4000)])
    assert verdict.figures["doubled"] == 1
    assert str(verdict).endswith("REWRITTEN [(1, 4000)]")


def test_a_failure_that_says_why_is_counted_and_not_lost() -> None:
    verdict = judge(PLANNED, without(4, 5), [], excused=[(1, 4000), (1, 6000)])
    assert (verdict.failed, verdict.missing) == (1, [(1, 5000)])


def test_a_run_that_was_left_open_is_neither_lost_nor_failed_whether_it_began_or_not() -> None:
    verdict = judge(PLANNED, without(4, 5, 6), [], excused=[(1, 5000)], left_open=[(1, 4000), (1, 7000), (1, 20_000)])
    assert (verdict.open, verdict.failed, verdict.missing) == (2, 1, [(1, 6000)])
    assert verdict.executed == 17
    assert judge(PLANNED, [*STARTS, STARTS[4]], [], left_open=[(1, 4000)]).doubled == [(1, 4000)]


def test_a_log_id_executed_twice_is_seen_though_its_instants_differ() -> None:
    again = Start(2, STARTS[-1].log_id, 10_000, 10_005)
    verdict = judge(PLANNED, [*STARTS, again], [])
    assert (verdict.good, verdict.doubled, verdict.repeated) == (False, [], [19])
    assert verdict.figures["doubled"] == 1


def test_of_the_missed_instants_those_that_were_made_up_must_run_once() -> None:
    once_now = MisfireRecord(1, 3, 4000, 6000, made_up=1)
    verdict = judge(PLANNED, without(4, 5), [once_now])
    assert (verdict.good, verdict.executed, verdict.misfired) == (True, 18, 2)
    assert judge(PLANNED, without(4, 5, 6), [once_now]).missing == [(1, 6000)]
    assert judge(PLANNED, without(4), [once_now]).doubled == [(1, 5000)]
    assert judge(PLANNED, [*without(4, 5), Start(1, 99, 6000, 9000)], [once_now]).doubled == [(1, 6000)]
    assert judge(PLANNED, without(4, 5), [once_now, once_now]).doubled == [(1, 4000), (1, 5000), (1, 6000)]


def test_more_made_up_than_missed_leaves_all_of_them_to_run() -> None:
    verdict = judge(PLANNED, STARTS, [MisfireRecord(1, 2, 4000, 5000, made_up=3)])
    assert (verdict.good, verdict.misfired) == (True, 0)


def test_the_latest_first_start_tells_how_late_it_was() -> None:
    late = Start(1, 99, 4000, 11_500)
    assert judge(PLANNED, STARTS, []).latest_ms == 5
    assert judge(PLANNED, [*without(4), late], []).latest_ms == 7500
    assert judge(PLANNED, [*STARTS, late], []).latest_ms == 5
    assert judge(PLANNED, [], []).latest_ms == 0


def test_a_verdict_says_its_figures_and_what_is_wrong_in_one_line() -> None:
    assert str(judge(PLANNED, STARTS, [])) == (
        "planned 20, executed 20, misfired 0, failed 0, open 0, lost 0, doubled 0, latest_ms 5"
    )
    assert str(judge(PLANNED, without(4), [])).endswith("lost 1, doubled 0, latest_ms 5, MISSING [(1, 4000)]")


def test_recorded_verdicts_become_the_table_of_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, page = tmp_path / "verdicts", tmp_path / "page.md"
    page.write_text(f"# Before\n\n{BEGIN}\nold\n{END}\n\nAfter\n")
    good, bad = judge(PLANNED, STARTS, []), judge(PLANNED, without(4), [])
    waiting = judge(PLANNED, without(4, 5), [], left_open=[(1, 4000), (1, 5000)])
    monkeypatch.setenv("JOBWHEEL_CHAOS_REPORT", str(file))
    record_all((("a", "kill", good), ("b", "kill", bad), ("a", "restart", waiting)))
    main(str(file), str(page))
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    assert rows[2:] == [
        "| a | kill | 7 | 20 | 20 | 0 | 0 | 0 | 0 | 0 | 0.0 s |",
        "| a | restart | 7 | 20 | 18 | 0 | 0 | 2 | 0 | 0 | 0.0 s |",
        "| b | **kill: not good** | 7 | 20 | 19 | 0 | 0 | 0 | 1 | 0 | 0.0 s |",
    ]
    assert page.read_text().startswith("# Before\n")
    assert page.read_text().endswith("\n\nAfter\n")
    assert "old" not in page.read_text()


def test_nothing_is_recorded_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JOBWHEEL_CHAOS_REPORT", raising=False)
    monkeypatch.chdir(tmp_path)
    record_all((("a", "kill", judge(PLANNED, STARTS, [])),))
    assert list(tmp_path.iterdir()) == []


def record_all(verdicts: tuple[tuple[str, str, Verdict], ...]) -> None:
    for database, fault, verdict in verdicts:
        record_verdict(database, fault, 7, verdict)
