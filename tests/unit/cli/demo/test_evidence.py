"""What the demo reads of the admin and of the executor's record, from replies of the API's shape."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from jobwheel.cli.demo.evidence import read_executions, read_misfires, read_runs, unedited
from jobwheel.cli.demo.feed import RunFeed
from jobwheel.cli.demo.sample_jobs import WatchedJob
from jobwheel.cli.demo.verdict import Span
from jobwheel.cli.rest import Rest
from jobwheel.kernel.instants import instant_text

START = 1_795_746_600_000


class Pages:
    """Answers each path with its items, two to a page, and notes what was asked."""

    def __init__(self, items: Mapping[str, Any]) -> None:
        self._items = items
        self.asked: list[tuple[str, dict[str, object]]] = []

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        query = dict(query or {})
        self.asked.append((path, query))
        found = self._items[path]
        if not isinstance(found, list):
            return found
        begin = int(str(query.get("after") or 0))
        more = len(found) > begin + 2
        return {"items": found[begin : begin + 2], "next": str(begin + 2) if more else None}


def _rest(items: Mapping[str, Any]) -> tuple[Rest, Pages]:
    pages = Pages(items)
    return cast("Rest", pages), pages


def _run(number: int, second: int, **changes: Any) -> dict[str, Any]:
    planned = instant_text(START + second * 1000)
    run = {
        "id": number,
        "job_id": 1,
        "trigger_type": "CRON",
        "planned_at": planned,
        "due_at": planned,
        "sent_at": instant_text(START + second * 1000 + 4),
        "ended_at": instant_text(START + second * 1000 + 10),
        "phase": None,
        "outcome": "succeeded",
        "handle_message": "fine",
        "trigger_message": None,
    }
    return run | changes


def test_reads_all_pages_of_the_window_with_its_last_instant() -> None:
    rest, pages = _rest({"/api/v1/runs": [_run(3, 3, trigger_type="MANUAL"), _run(2, 2, sent_at=None), _run(1, 1)]})
    runs = read_runs(rest, 7, START, START + 3000)
    assert [(run.id, run.by_schedule) for run in runs] == [(3, False), (2, True), (1, True)]
    assert [run.sent_ms for run in runs] == [START + 3004, None, START + 1004]
    query = pages.asked[0][1]
    assert query["group_id"] == 7
    assert query["planned_from"] == instant_text(START)
    # The API leaves the end out.
    assert query["planned_until"] == instant_text(START + 3001)


def _event(kind: str, at_ms: int, from_ms: int = 0, until_ms: int = 0) -> dict[str, Any]:
    details = {"from": instant_text(from_ms), "until": instant_text(until_ms)}
    return {"kind": kind, "at": instant_text(at_ms), "details": details}


def test_reads_the_misfires_of_its_own_time_newest_first() -> None:
    events = [
        _event("job.stopped", START + 9000),
        _event("job.misfired", START + 8000, START + 1000, START + 2000),
        _event("job.started", START + 100),
        _event("job.misfired", START - 1, START - 5000, START - 4000),
        _event("job.misfired", START - 2, START - 9000, START - 8000),
    ]
    rest, pages = _rest({"/api/v1/jobs/1/events": events})
    assert read_misfires(rest, 1, START) == [Span(START + 1000, START + 2000)]
    assert len(pages.asked) == 2


def test_a_job_that_somebody_edited_is_not_judged() -> None:
    rest, _ = _rest({"/api/v1/jobs/1": {"version": 4}, "/api/v1/jobs/2": {"version": 9}})
    same, edited = WatchedJob(1, "same", None, None, 4), WatchedJob(2, "edited", None, None, 8)
    assert unedited(rest, [same, edited]) == [same]


def test_counts_executions(tmp_path: Path) -> None:
    (tmp_path / "executions.txt").write_text("7\n8\n7\n")
    assert read_executions(tmp_path / "executions.txt") == {7: 2, 8: 1}


def test_a_run_is_news_once_and_only_when_it_is_due() -> None:
    runs = [_run(2, 2, outcome=None, phase="accepted", ended_at=None), _run(1, 1)]
    rest, _ = _rest({"/api/v1/runs": runs})
    feed = RunFeed(7, {1: "Every second"}, START)
    before = feed.look(rest, START + 500)
    assert (before.recent, before.ended) == ((), ())
    first = feed.look(rest, START + 2500)
    assert [line.run_id for line in first.recent] == [2, 1]
    assert [(line.run_id, line.late, line.took, line.message) for line in first.ended] == [(1, "4 ms", "6 ms", "fine")]
    runs[0] = _run(2, 2, outcome="failed", handle_message="no\nluck")
    second = feed.look(rest, START + 2500)
    assert [(line.run_id, line.result, line.message) for line in second.ended] == [(2, "failed", "no")]
    assert feed.look(rest, START + 2500).ended == ()
    assert feed.outcomes == {"succeeded": 1, "failed": 1}
    assert feed.lateness_p99_ms() == 4


@pytest.mark.parametrize("phase", ["pending", "sending", "unconfirmed"])
def test_a_run_on_its_way_shows_its_phase(phase: str) -> None:
    rest, _ = _rest({"/api/v1/runs": [_run(1, 1, outcome=None, phase=phase, sent_at=None, ended_at=None)]})
    (line,) = RunFeed(7, {}, START).look(rest, START + 1500).recent
    assert (line.result, line.late, line.job, line.message) == (phase, "", "job 1", "")
