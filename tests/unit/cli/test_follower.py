"""A run is followed to its end, whatever comes between."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from jobwheel.cli.errors import AdminUnreachableError, RefusedError
from jobwheel.cli.follow import EXIT_CODES, GONE_CODE, Follower
from jobwheel.kernel.errors import JobwheelError

PLANNED = "2026-11-27T02:30:00.250Z"
RUN: dict[str, Any] = {
    "job_id": 3,
    "phase": "pending",
    "outcome": None,
    "accepted_at": None,
    "planned_at": PLANNED,
    "attempt": 1,
    "broadcast_id": None,
    "shard_index": None,
}


class Admin:
    """Runs by their ids, each in the states that it has one after the other; the last one stays."""

    def __init__(self, **logs: str) -> None:
        self.states: dict[int, Iterator[dict[str, Any] | JobwheelError]] = {}
        self.last: dict[int, dict[str, Any] | JobwheelError] = {}
        self.logs = logs
        self.waits: list[float] = []
        self.listed: list[Mapping[str, object]] = []

    def run(self, run_id: int, *states: dict[str, Any] | JobwheelError, **fields: object) -> None:
        whole = [
            each if isinstance(each, JobwheelError) else {**RUN, "id": run_id, **fields, **each} for each in states
        ]
        self.states[run_id] = iter(whole)
        self.last[run_id] = whole[-1]

    def get(self, path: str, query: Mapping[str, object] | None = None) -> Any:
        parts = path.removeprefix("/api/v1/runs").strip("/").split("/")
        if parts == [""]:
            assert query is not None
            self.listed.append(query)
            return {"items": [each for each in self.last.values() if isinstance(each, dict)], "next": None}
        run_id = int(parts[0])
        if len(parts) == 2:
            assert query is not None
            return self._log(run_id, int(str(query["from_line"])))
        state = next(self.states[run_id], self.last[run_id])
        if isinstance(state, JobwheelError):
            raise state
        return state

    def _log(self, run_id: int, line: int) -> dict[str, Any]:
        text = self.logs.get(f"log_{run_id}", "")
        if text == "away":
            raise RefusedError(502, "executor_unreachable", "nobody answers")
        lines = text.splitlines()[line - 1 :]
        return {"from_line": line, "to_line": line - 1 + len(lines), "content": "\n".join(lines), "is_end": False}

    def follow(self, run_id: int = 7) -> int:
        return Follower(self, self.waits.append).follow(run_id)


def ended(outcome: str) -> dict[str, Any]:
    return {"phase": None, "outcome": outcome}


@pytest.mark.parametrize(("outcome", "code"), EXIT_CODES.items())
def test_ends_as_the_run_did(outcome: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin(log_7="one\ntwo\n")
    admin.run(7, {}, {"phase": "sending"}, {"phase": "accepted"}, ended(outcome))
    assert admin.follow() == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("one\ntwo\n", f"run 7: {outcome}\n")
    assert len(admin.waits) == 3
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


def test_follows_the_retries_of_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin(log_7="one\n", log_9="two\n", log_12="three\n")
    admin.run(7, ended("failed"))
    admin.run(8, ended("failed"), attempt=2, first_run_id=2)
    admin.run(9, ended("timed_out"), attempt=2, first_run_id=7)
    admin.run(12, {}, ended("succeeded"), attempt=3, first_run_id=7)
    assert admin.follow() == 0
    captured = capsys.readouterr()
    assert captured.out == "one\ntwo\nthree\n"
    assert captured.err.splitlines() == [
        "run 7: failed, is tried again as run 9",
        "run 9: timed_out, is tried again as run 12",
        "run 12: succeeded",
    ]
    assert admin.listed[0] == {
        "job_id": 3,
        "planned_from": PLANNED,
        "planned_until": "2026-11-27T02:30:00.251+00:00",
        "limit": 500,
    }


def test_a_retry_that_fails_too_is_the_end() -> None:
    admin = Admin()
    admin.run(7, ended("failed"))
    admin.run(9, ended("failed"), attempt=2, first_run_id=7)
    assert admin.follow() == EXIT_CODES["failed"]


def test_of_a_broadcast_all_shards(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin()
    for run_id, outcome in ((7, "succeeded"), (8, "lost"), (9, "failed")):
        admin.run(run_id, {}, ended(outcome), broadcast_id=7, shard_index=run_id - 7)
    admin.run(10, ended("succeeded"), broadcast_id=7, shard_index=1, attempt=2, first_run_id=8)
    assert admin.follow() == EXIT_CODES["failed"]
    assert [line.split(":")[0] for line in capsys.readouterr().err.splitlines()] == [
        "run 7",
        "run 8",
        "run 10",
        "run 9",
    ]


def test_a_run_that_is_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin()
    admin.run(7, {}, RefusedError(404, "not_found", "there is no run 7"))
    assert admin.follow() == GONE_CODE
    assert capsys.readouterr().err == "run 7: is gone: there is no run 7\n"


def test_an_admin_that_is_started_anew_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    away = AdminUnreachableError("http://127.0.0.1:8080", "refused")
    admin = Admin()
    admin.run(7, {}, away, RefusedError(503, "database_unavailable", "later"), ended("succeeded"))
    assert admin.follow() == 0
    assert len(capsys.readouterr().err.splitlines()) == 2


def test_an_admin_that_stays_away_is_not_waited_for_for_ever() -> None:
    admin = Admin()
    admin.run(7, {}, AdminUnreachableError("http://127.0.0.1:8080", "refused"))
    with pytest.raises(AdminUnreachableError):
        admin.follow()
    assert sum(admin.waits) == pytest.approx(60.5)


def test_a_refusal_is_no_matter_of_time() -> None:
    admin = Admin()
    admin.run(7, RefusedError(403, "forbidden", "no"))
    with pytest.raises(RefusedError):
        admin.follow()
    assert admin.waits == []


def test_without_its_log_the_end_is_known_all_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin(log_7="away")
    admin.run(7, {"phase": "accepted"}, {"phase": "accepted"}, ended("succeeded"))
    assert admin.follow() == 0
    assert capsys.readouterr().err.splitlines() == [
        "the log of run 7 cannot be read at the moment: nobody answers",
        "run 7: succeeded",
    ]
