"""A claim that the database refuses for one row: everyone else is planned, and that job is stopped if it lasts."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import pytest
from sqlalchemy import select
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.suspects import REFUSED_S
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.tables import job_log
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


async def pass_after(made: Claims, seconds: float) -> set[JobId]:
    """The jobs that a pass plans runs of, so much later."""
    clock = made.store.clock
    assert isinstance(clock, FakeClock)
    await clock.advance(seconds)
    return await planned_of(made)


@pytest.mark.parametrize("at", [(0,), (4,), (8,), (0, 1, 5, 8)])
async def test_jobs_whose_runs_are_refused_are_stopped_and_everyone_else_is_planned(
    store: Store, at: Sequence[int]
) -> None:
    jobs = await jobs_with_poison(store, *at)
    made = Claims(store)
    async with refused(store, "xxl_job_log", "INSERT"):
        bad = {jobs[n] for n in at}
        assert await planned_of(made) == set(jobs) - bad
        assert await pass_after(made, REFUSED_S - 1) == set(jobs) - bad
        assert {(await store.job_row(job_id))["trigger_status"] for job_id in jobs} == {1}
        assert await pass_after(made, 1) == set(jobs) - bad
        for job_id in jobs:
            row = await store.job_row(job_id)
            assert row["trigger_status"] == (0 if job_id in bad else 1)
            assert ("job.corrupt" in await events_of(store, job_id)) == (job_id in bad)
        event = (await store.database.read(list_job_events, jobs[at[0]], None, 1))[0]
        assert "not with me" in str(event.details["reason"])


async def test_a_job_that_is_refused_for_a_while_loses_no_instant(store: Store) -> None:
    """As when chance or a lock refuses it: a job that is refused once, alone, is not to blame."""
    jobs = await jobs_with_poison(store, 4)
    made = Claims(store)
    for table in ("xxl_job_log", "xxl_job_info"):
        async with refused(store, table, "INSERT" if table == "xxl_job_log" else "UPDATE"):
            assert jobs[4] not in await pass_after(made, 2)
            assert jobs[4] not in await pass_after(made, 1)
        planned = await pass_after(made, 1)
        assert jobs[4] in planned
    times = [run.planned_ms for run in made.all_flown if run.job_id == jobs[4]]
    assert times == [run.planned_ms for run in made.all_flown if run.job_id == jobs[3]]
    assert await events_of(store, jobs[4]) == []


async def test_a_job_that_can_not_even_be_stopped_is_left_alone_for_a_minute(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = await jobs_with_poison(store, 4)
    made = Claims(store)
    async with refused(store, "xxl_job_info", "UPDATE"):
        assert await planned_of(made) == {*jobs} - {jobs[4]}
        assert "claimer.job_cannot_be_stopped" not in caplog.text
        for seconds in (REFUSED_S, 3):
            assert await pass_after(made, seconds) == {*jobs} - {jobs[4]}
            assert caplog.text.count("claimer.job_cannot_be_stopped") == 1
    assert jobs[4] in await pass_after(made, 60)
    assert "job.corrupt" not in await events_of(store, jobs[4])


@pytest.mark.parametrize("count", [1, 12])
async def test_bad_jobs_alone_are_stopped_like_in_company(store: Store, count: int) -> None:
    jobs = [await store.job(executor_param=POISON) for _ in range(count)]
    made = Claims(store)
    async with refused(store, "xxl_job_log", "INSERT"):
        assert await planned_of(made) == set()
        assert await pass_after(made, REFUSED_S) == set()
        assert [await events_of(store, job_id) for job_id in jobs] == [["job.corrupt"]] * count
        assert {(await store.job_row(job_id))["trigger_status"] for job_id in jobs} == {0}
        assert await planned_of(made) == set()
    assert await store.database.read(lambda c: c.execute(select(job_log.c.id)).all()) == []


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
