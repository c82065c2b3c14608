"""On 200,000 runs no query of the engine, and no first page of the run list, reads its way through the log."""

import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId
from jobwheel.admin.domain.run import Outcome, Phase, TriggerType
from jobwheel.admin.store import claims, nodes, pause_windows, run_list, run_log, runs, schema
from jobwheel.admin.store.database import open_engine
from jobwheel.admin.store.dialects import sqlite
from jobwheel.admin.store.run_list import RunFilter
from tests.support.store import JOB_COLUMNS, NOW_MS

RUNS = 200_000
JOBS = 2_000
NODE = NodeId(3)

_INSERT = """
INSERT INTO xxl_job_log (job_group, job_id, executor_address, trigger_time, trigger_code, handle_code, alarm_status,
                         planned_ms, due_ms, triggered_ms, trigger_type, phase, outcome, owner, check_ms, attempt)
VALUES (?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, 1)
"""


def _rows() -> Iterator[tuple[object, ...]]:
    """Runs of the last weeks, nearly all of them done well; the newest are open; a few are what people look for."""
    for n in range(RUNS):
        at_ms = NOW_MS - (RUNS - n) * 10_000
        phase = outcome = owner = check_ms = None
        address, codes, cause = f"http://10.0.0.{n % 9}:9999/", (200, 200), "CRON"
        if n >= RUNS - 2_000:
            phase, codes = ("pending", "sending", "unconfirmed", "accepted")[n % 4], (0, 0)
            owner = NODE if n % 4 < 2 else None
            check_ms = NOW_MS if phase == "unconfirmed" else None
        else:
            outcome = "succeeded"
        if n % 5_000 == 77 and phase is None:
            outcome, codes = "failed", (500, 0)
        if n % 20_000 == 78:
            cause = "MANUAL"
        if n == 4_711:
            address = "http://rare:9999/"
        yield (1 + n % 5, 1 + n % JOBS, address, "2026-11-27 10:30:00", *codes, at_ms, at_ms, at_ms, cause, phase,
               outcome, owner, check_ms)  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    opened = open_engine(tmp_path_factory.mktemp("plans") / "jobwheel.db")
    with opened.begin() as connection:
        schema.prepare(connection, "test")
        cursor: Any = connection.connection.cursor()
        cursor.executemany(_INSERT, _rows())
        job = {**JOB_COLUMNS, "trigger_next_time": NOW_MS + 3_600_000}
        columns, values = ", ".join(job), tuple(job.values())
        marks = ", ".join("?" for _ in values)
        cursor.executemany(f"INSERT INTO xxl_job_info ({columns}) VALUES ({marks})", [values] * JOBS)
    yield opened
    opened.dispose()


@dataclass
class Seen:
    """What a query did: its plan, and how long it took at best."""

    plan: list[str]
    took_s: float
    rows: object

    def uses(self, index: str) -> bool:
        return any(f"INDEX {index} " in f"{line} " for line in self.plan)

    @property
    def scans(self) -> list[str]:
        """Steps that read a large table, or an index of it, from end to end."""
        return [line for line in self.plan if line.startswith("SCAN xxl_job_")]


@pytest.fixture
def see(engine: Engine) -> Callable[..., Seen]:
    """Runs a function of the store and explains each of its statements."""

    def run(work: Callable[..., object], *args: object) -> Seen:
        statements: list[tuple[str, Any]] = []
        with engine.connect() as connection, connection.begin() as transaction:

            def note(_c: object, _k: object, statement: str, parameters: Any, *_: object) -> None:
                statements.append((statement, parameters))

            event.listen(connection, "before_cursor_execute", note)
            took_s, rows = min((_timed(work, connection, args) for _ in range(3)), key=lambda timed: timed[0])
            event.remove(connection, "before_cursor_execute", note)
            plan = [line for statement in dict(statements).items() for line in _explain(connection, *statement)]
            transaction.rollback()
        return Seen(plan, took_s, rows)

    return run


def _timed(work: Callable[..., object], connection: Connection, args: tuple[object, ...]) -> tuple[float, object]:
    began_s = time.perf_counter()
    rows = work(connection, *args)
    return time.perf_counter() - began_s, rows


def _explain(connection: Connection, statement: str, parameters: Any) -> list[str]:
    cursor: Any = connection.connection.cursor()
    return [row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()]


ENGINE_QUERIES: list[tuple[str, Callable[..., object], tuple[object, ...]]] = [
    ("jobwheel_info_due", claims.due_jobs, (NOW_MS, 1000)),
    ("jobwheel_pause_window_job", pause_windows.read_windows, ([JobId(7), JobId(8)], NOW_MS)),
    ("jobwheel_log_owner", runs.has_ownerless, (NOW_MS,)),
    ("jobwheel_log_owner", runs.adopt_ownerless, (NODE, NOW_MS, 100)),
    ("jobwheel_log_owner", runs.release_pending, (NODE,)),
    ("jobwheel_log_owner", run_log.sending_since, (NODE, NOW_MS, 200)),
    ("jobwheel_log_check", run_log.due_unconfirmed, (NOW_MS, 200)),
    ("jobwheel_log_owner", nodes.adopt_all, (NodeId(9), NOW_MS, 60_000)),
    ("jobwheel_log_open", runs.has_open_runs, (JobId(7),)),
    ("jobwheel_log_open", runs.remove_planned, (JobId(7), NOW_MS)),
    ("jobwheel_log_open", runs.remove_pending, (JobId(7),)),
    ("i_job_id", run_list.last_planned, (JobId(7),)),
    ("i_job_id", run_list.delete_runs_of_job, (JobId(7), 200)),
]


@pytest.mark.parametrize(
    ("index", "work", "args"), ENGINE_QUERIES, ids=[work.__name__ for _, work, _ in ENGINE_QUERIES]
)
def test_the_engines_queries_use_their_index(
    see: Callable[..., Seen], index: str, work: Callable[..., object], args: tuple[object, ...]
) -> None:
    seen = see(work, *args)
    assert seen.uses(index), seen.plan
    assert seen.scans == []


def test_fix_delay_looks_for_open_runs_alone(see: Callable[..., Seen]) -> None:
    seen = see(lambda c: c.exec_driver_sql(sqlite._RESCHEDULE_FIX_DELAY, (NOW_MS, 7, NOW_MS)))
    assert seen.uses("jobwheel_log_open"), seen.plan
    assert seen.scans == []


def test_own_runs_come_from_the_index_alone(engine: Engine) -> None:
    with engine.connect() as connection:
        plan = _explain(connection, sqlite._OWN_DUE, (NODE, NOW_MS, 20_000))
    assert any("USING COVERING INDEX jobwheel_log_owner" in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan)


def test_own_runs_but_for_some_jobs_come_by_the_index(engine: Engine) -> None:
    with engine.connect() as connection:
        plan = _explain(connection, sqlite._OWN_DUE_OF_OTHERS, (NODE, NOW_MS, "[7]", 20_000))
    assert any("USING INDEX jobwheel_log_owner (phase=? AND owner=? AND due_ms<?)" in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan)


HOT_STATEMENTS = [
    "_OWN_PENDING",
    "_TAKE_OFF",
    "_REDIRECT",
    "_ACCEPTED",
    "_UNSENT",
    "_UNCONFIRMED",
    "_SETTLED",
    "_SETTLE",
    "_STILL_DUE",
    "_MOVE_ON",
]


@pytest.mark.parametrize("name", HOT_STATEMENTS)
def test_a_hot_batch_looks_each_row_up_by_its_id(engine: Engine, name: str) -> None:
    statement: str = getattr(sqlite, name)
    with engine.connect() as connection:
        plan = _explain(connection, statement, ["[]"] * statement.count("?"))
    rows = [line for line in plan if re.match(r"(SCAN|SEARCH) (xxl_job_log|xxl_job_info|log|job)\b", line)]
    assert rows
    assert all("USING INTEGER PRIMARY KEY (rowid=?)" in line for line in rows), plan


FILTERS: list[tuple[str | None, RunFilter]] = [
    ("i_job_id", RunFilter(job_id=JobId(7))),
    ("i_job_group", RunFilter(group_id=GroupId(2))),
    ("jobwheel_log_owner", RunFilter(phase=Phase.ACCEPTED)),
    ("jobwheel_log_outcome", RunFilter(outcome=Outcome.FAILED)),
    ("jobwheel_log_outcome", RunFilter(outcome=Outcome.LOST)),
    ("jobwheel_log_cause", RunFilter(trigger_type=TriggerType.MANUAL)),
    ("jobwheel_log_cause", RunFilter(trigger_type=TriggerType.BACKFILL)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 60_000)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 10**10)),
    ("jobwheel_log_planned", RunFilter(planned_until_ms=NOW_MS - 10**9)),
    ("jobwheel_log_planned", RunFilter(planned_from_ms=NOW_MS - 10**9, planned_until_ms=NOW_MS - 10**9 + 60_000)),
    (None, RunFilter()),
    (None, RunFilter(outcome=Outcome.SUCCEEDED)),
    (None, RunFilter(trigger_type=TriggerType.CRON)),
    ("jobwheel_log_address", RunFilter(executor_address="http://10.0.0.3:9999/")),
    ("jobwheel_log_address", RunFilter(executor_address="http://rare:9999/")),
    ("jobwheel_log_address", RunFilter(executor_address="http://never:9999/")),
]


@pytest.mark.parametrize(("index", "wanted"), FILTERS)
def test_the_first_page_of_the_run_list(see: Callable[..., Seen], index: str | None, wanted: RunFilter) -> None:
    seen = see(run_list.list_runs, wanted, None, 50)
    if index is None:
        # Nearly every row matches: the newest rows are read until the page is full.
        assert not any("TEMP B-TREE" in line for line in seen.plan), seen.plan
    else:
        assert seen.uses(index), seen.plan
        assert seen.scans == []
    assert seen.took_s < 0.2


@pytest.mark.parametrize(
    "wanted", [RunFilter(), RunFilter(planned_until_ms=NOW_MS - 10**9), RunFilter(job_id=JobId(7))]
)
def test_a_later_page_costs_no_more(see: Callable[..., Seen], wanted: RunFilter) -> None:
    seen = see(run_list.list_runs, wanted, 50_000, 50)
    assert not any("TEMP B-TREE" in line for line in seen.plan), seen.plan
    assert seen.took_s < 0.2
