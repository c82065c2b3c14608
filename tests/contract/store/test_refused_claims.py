"""A claim that the database refuses for one row: that job is stopped, and everyone else is planned."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import pytest
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.store.events import list_job_events
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.claims import Claims, events_of
from tests.support.store import NOW_MS, Store

SECOND_MS = NOW_MS - 250
POISON: Final = "poison"
# Of every kind: what makes a row refused whose parameter is poison, and what takes that away.
_SQLITE: Final = """
CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} WHEN NEW.executor_param {condition}
BEGIN SELECT RAISE(ABORT, 'not with me'); END
"""
_POSTGRESQL_FUNCTION: Final = """
CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN IF NEW.executor_param {condition} THEN RAISE EXCEPTION 'not with me'; END IF; RETURN NEW; END $$
"""
_POSTGRESQL: Final = """
CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} FOR EACH ROW EXECUTE FUNCTION refuse_{table}()
"""
_MARIADB: Final = """
CREATE TRIGGER refuse_{table} BEFORE {event} ON {table} FOR EACH ROW
BEGIN IF NEW.executor_param {condition} THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not with me'; END IF; END
"""
_MAKE: Final[Mapping[str, Sequence[str]]] = {
    "sqlite": (_SQLITE,),
    "postgresql": (_POSTGRESQL_FUNCTION, _POSTGRESQL),
    "mariadb": (_MARIADB,),
}
_REMOVE: Final[Mapping[str, str]] = {
    "sqlite": "DROP TRIGGER refuse_{table}",
    "postgresql": "DROP FUNCTION refuse_{table} CASCADE",
    "mariadb": "DROP TRIGGER refuse_{table}",
}


async def execute(store: Store, statement: str) -> None:
    await store.database.write(lambda c: c.exec_driver_sql(statement))


@contextlib.asynccontextmanager
async def refused(store: Store, table: str, event: str, condition: str = f"= '{POISON}'") -> AsyncIterator[None]:
    """Rows of the table are refused for as long."""
    kind = store.database.kind
    for statement in _MAKE[kind]:
        await execute(store, statement.format(table=table, event=event, condition=condition))
    try:
        yield
    finally:
        await execute(store, _REMOVE[kind].format(table=table))


async def planned_of(made: Claims) -> set[JobId]:
    """The jobs that a pass plans runs of."""
    await made.planned()
    return {run.job_id for run in made.flown}


async def jobs_with_poison(store: Store, *at: int) -> Sequence[JobId]:
    return [await store.job(executor_param=POISON if n in at else "day=1") for n in range(9)]


@pytest.mark.parametrize("at", [(0,), (4,), (8,), (0, 1, 5, 8)])
async def test_jobs_whose_runs_are_refused_are_stopped_and_everyone_else_is_planned(
    store: Store, at: Sequence[int]
) -> None:
    jobs = await jobs_with_poison(store, *at)
    made = Claims(store)
    async with refused(store, "xxl_job_log", "INSERT"):
        bad = {jobs[n] for n in at}
        assert await planned_of(made) == set(jobs) - bad
        for job_id in jobs:
            row = await store.job_row(job_id)
            assert row["trigger_status"] == (0 if job_id in bad else 1)
            assert await events_of(store, job_id) == (["job.corrupt"] if job_id in bad else [])
        event = (await store.database.read(list_job_events, jobs[at[0]], None, 1))[0]
        assert "not with me" in str(event.details["reason"])
        assert await planned_of(made) == set()


async def test_a_job_that_can_not_even_be_stopped_is_left_alone_for_a_minute(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = await jobs_with_poison(store, 4)
    made = Claims(store)
    clock = store.clock
    assert isinstance(clock, FakeClock)
    async with refused(store, "xxl_job_info", "UPDATE"):
        assert await planned_of(made) == {*jobs} - {jobs[4]}
        assert "claimer.job_cannot_be_stopped" in caplog.text
        assert await planned_of(made) == set()
        clock.step(3)
        await clock.advance(3)
        assert await planned_of(made) == {*jobs} - {jobs[4]}
        assert caplog.text.count("claimer.job_cannot_be_stopped") == 1
    await clock.advance(60)
    assert jobs[4] in await planned_of(made)
    assert await events_of(store, jobs[4]) != ["job.corrupt"]


async def test_if_nobody_can_be_planned_no_job_is_stopped_and_the_pass_fails(store: Store) -> None:
    jobs = await jobs_with_poison(store)
    made = Claims(store)
    async with refused(store, "xxl_job_log", "INSERT", "<> 'none'"):
        for _ in range(2):
            with pytest.raises((DBAPIError, sqlite3.Error), match="not with me"):
                await planned_of(made)
        for job_id in jobs:
            assert (await store.job_row(job_id))["trigger_status"] == 1
    assert await planned_of(made) == set(jobs)
    assert [await events_of(store, job_id) for job_id in jobs] == [[]] * len(jobs)
