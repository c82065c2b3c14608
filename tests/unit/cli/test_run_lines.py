"""What `jobwheel runs` says of a run and of its relatives."""

from typing import Any

import pytest

from jobwheel.cli.runs_commands import _chain_lines, _what_came, message_of


def related(run_id: int, **fields: Any) -> dict[str, Any]:
    common = {"job_id": 7, "attempt": 1, "shard_index": None, "shard_total": None, "phase": None, "outcome": "failed"}
    return {"id": run_id, **common, **fields}


def test_a_run_that_is_alone_has_no_further_lines() -> None:
    chain = {"parent": None, "attempts": [related(4)], "shards": [], "children": []}
    assert _chain_lines({"id": 4}, chain) == []


def test_relatives_are_told_in_the_order_of_their_coming() -> None:
    shards = [related(4, shard_index=0, shard_total=2), related(5, shard_index=1, shard_total=2)]
    retry = related(6, shard_index=1, shard_total=2, attempt=2, outcome=None, phase="accepted")
    chain = {
        "parent": related(3, outcome="succeeded"),
        "attempts": [shards[1], retry],
        "shards": [*shards, retry],
        "children": [related(9, job_id=8, outcome=None, phase="pending")],
    }
    assert _chain_lines({"id": 5}, chain) == [
        ("parent", "run 3: succeeded"),
        ("attempt 2", "run 6: accepted"),
        ("shard 0/2", "run 4: failed"),
        ("shard 1/2, attempt 2", "run 6: accepted"),
        ("child", "job 8, run 9: pending"),
    ]


@pytest.mark.parametrize(
    ("result", "dispatch", "line"),
    [
        ("no such file\n→ tried again at once: run 7", "accepted\n", "no such file"),
        ("\n→ children: job 8 (run 9)", "asked\naccepted\n", "accepted"),
        (None, "type: CRON\nnone could be reached\n→ tried again at once: run 7\n", "none could be reached"),
        (None, None, ""),
    ],
)
def test_the_line_of_a_run_is_how_it_ended_and_not_what_came_of_it(
    result: str | None, dispatch: str | None, line: str
) -> None:
    assert message_of({"handle_message": result, "trigger_message": dispatch}) == line


def test_what_came_of_a_run_is_told() -> None:
    run = {"trigger_message": None, "handle_message": "no such file\n\u2192 tried again after 30 s: run 4712"}
    assert _what_came(run) == ["tried again after 30 s: run 4712"]
