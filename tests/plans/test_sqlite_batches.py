"""SQLite's hot batches: whatever the planner knows of the tables, each row is looked up by its id."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine

from jobwheel.admin.store import schema
from jobwheel.admin.store.dialects import sqlite, sqlite_ends
from jobwheel.admin.store.sqlite_connections import open_engine

HOT_STATEMENTS = [
    "_OWN_PENDING",
    "_TAKE_OFF",
    "_REDIRECT",
    "_ACCEPTED",
    "_UNCONFIRMED",
    "_SETTLED",
    "_SETTLE",
    "_STILL_DUE",
    "_MOVE_ON",
]
ENDS = ["_UNSENT", "_UNANSWERED", "_CANCELLED"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = open_engine(Path(tmp_path_factory.mktemp("batches")) / "jobwheel.db")
    with opened.begin() as connection:
        schema.prepare(connection, "test")
    yield opened
    opened.dispose()


def explain(engine: Engine, statement: str, parameters: Any) -> list[str]:
    def plan(connection: Connection) -> list[str]:
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", tuple(parameters))
        return [row[3] for row in rows]

    with engine.connect() as connection:
        return plan(connection)


@pytest.mark.parametrize("name", HOT_STATEMENTS + ENDS)
def test_a_hot_batch_looks_each_row_up_by_its_id(engine: Engine, name: str) -> None:
    statement: str = getattr(sqlite_ends if name in ENDS else sqlite, name)
    plan = explain(engine, statement, ["[]"] * statement.count("?"))
    rows = [line for line in plan if re.match(r"(SCAN|SEARCH) (xxl_job_log|xxl_job_info|log|job)\b", line)]
    assert rows
    assert all("USING INTEGER PRIMARY KEY (rowid=?)" in line for line in rows), plan


def test_own_runs_come_from_the_index_alone(engine: Engine) -> None:
    plan = explain(engine, sqlite._OWN_DUE, (1, 1, 20_000))
    assert any("USING COVERING INDEX jobwheel_log_owner" in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan)


def test_own_runs_but_for_some_jobs_come_by_the_index(engine: Engine) -> None:
    plan = explain(engine, sqlite._OWN_DUE_OF_OTHERS, (1, 1, "[7]", 20_000))
    assert any("USING INDEX jobwheel_log_owner (phase=? AND owner=? AND due_ms<?)" in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan)
