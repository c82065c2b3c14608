"""Job rows that hold what their columns cannot, as SQLite lets them: they cost their own job alone."""

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Column, Connection, DateTime, Integer, insert

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.store import jobs, runs, scripts
from jobwheel.admin.store.claims import _DUE_COLUMNS
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.admin.store.runs import _DISPATCH_COLUMNS
from jobwheel.admin.store.tables import job_info
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.claims import Claims, events_of
from tests.support.store import JOB_COLUMNS, NOW_MS, Store, open_store

# In SQL, since no driver would write them.
BYTES: Final = "x'ff00'"
NOT_UTF8: Final = "CAST(x'e9ff' AS TEXT)"
HALF_A_PAIR: Final = "CAST(x'eda080' AS TEXT)"
OF_TEXTS: Final = (BYTES, NOT_UTF8, HALF_A_PAIR)
OF_NUMBERS: Final = (BYTES, NOT_UTF8, "'soon'", "''", "1.5", "9e999", "-9e999")
OF_TIMES: Final = (BYTES, NOT_UTF8, "'soon'", "''", "17", "'2026-02-30 00:00:00'", "'0000-00-00 00:00:00'")
# A job is due only with a number, and running only with 1: what is anything else is nobody's.
OF_DUE_TIMES: Final = (f"{NOW_MS - 250}.5", "-9e999", "-1.5")

Bad = tuple[str, str]
"""A column, and a value for it, in SQL."""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as opened:
        yield opened


def bad_values(columns: Sequence[Column[object]]) -> list[Bad]:
    """What each of the columns may hold and should not."""
    table = []
    for column in columns:
        if column.primary_key or column.name == "trigger_status":
            continue
        if column.name == "trigger_next_time":
            values: Sequence[str] = OF_DUE_TIMES
        elif isinstance(column.type, Integer):
            values = OF_NUMBERS
        else:
            values = OF_TIMES if isinstance(column.type, DateTime) else OF_TEXTS
        table += [(column.name, value) for value in values]
    return table


async def bad_jobs(store: Store, table: Sequence[Bad]) -> Mapping[JobId, Bad]:
    """A job for each of the values."""

    def make(connection: Connection) -> dict[JobId, Bad]:
        made = {}
        for column, value in table:
            values = {**JOB_COLUMNS, "glue_type": "GLUE_SHELL" if column.startswith("glue") else "BEAN"}
            key = connection.execute(insert(job_info).values(values)).inserted_primary_key
            assert key is not None
            connection.exec_driver_sql(f"UPDATE xxl_job_info SET {column} = {value} WHERE id = {key[0]}")
            made[JobId(key[0])] = (column, value)
        return made

    return await store.database.write(make)


def statuses(connection: Connection) -> Mapping[int, tuple[int, object]]:
    rows = connection.exec_driver_sql("SELECT id, trigger_status, trigger_next_time FROM xxl_job_info")
    return {row[0]: (row[1], row[2]) for row in rows}


async def test_a_claim_stops_each_of_them_with_an_event_and_plans_everyone_else(store: Store) -> None:
    good = [await store.job(executor_param="日=1")]
    bad = await bad_jobs(store, bad_values(_DUE_COLUMNS))
    good.append(await store.job(executor_param="日=1"))
    made = Claims(store)
    await made.planned()
    assert {(run.job_id, run.parameter) for run in made.flown} == {(job_id, "日=1") for job_id in good}
    found = await store.database.read(statuses)
    for job_id, (column, value) in bad.items():
        assert found[job_id] == (0, 0), (column, value)
        assert await events_of(store, job_id) == ["job.corrupt"]
        told = (await store.database.read(list_job_events, job_id, None, 1))[0].details["reason"]
        assert f"{column} holds " in str(told)
        assert "which is no " in str(told)
    assert await made.planned() == []


async def test_a_take_off_is_told_of_each_of_them(store: Store) -> None:
    good = [await store.job(), await store.job(glue_type="GLUE_SHELL", glue_source="echo")]
    bad = await bad_jobs(store, [*bad_values(_DISPATCH_COLUMNS), *bad_values([job_info.c.glue_source])])
    sent = await store.database.read(runs.load_dispatch_jobs, store.zone, [*bad, *good])
    assert [sent[job_id].damage for job_id in good] == [None, None]
    for job_id, (column, _) in bad.items():
        assert f"{column} holds " in (sent[job_id].damage or "")
        job = sent[job_id]
        assert {type(each) for each in (job.handler, job.route_strategy, job.block_strategy, job.glue_type)} == {str}
        assert {type(each) for each in (job.id, job.group_id, job.timeout_s, job.retry_count)} == {int}


async def test_a_script_whose_time_is_none_is_sent_as_the_oldest(store: Store) -> None:
    bad = await bad_jobs(store, bad_values([job_info.c.glue_updatetime]))
    sent = await store.database.read(runs.load_dispatch_jobs, store.zone, list(bad))
    assert len(bad) == len(OF_TIMES)
    assert {(job.damage, job.script.saved_ms if job.script else None) for job in sent.values()} == {(None, 0)}


async def test_people_can_look_at_all_of_them_and_set_them_right(store: Store) -> None:
    good = await store.job()
    bad = await bad_jobs(store, bad_values(list(job_info.c)))
    listed = await store.database.read(jobs.list_jobs, store.zone, JobFilter(), 0, 1000)
    assert [job.id for job in listed] == [good, *bad]

    def save_each(connection: Connection) -> None:
        for job_id in bad:
            scripts.get_script(connection, store.zone, job_id)
            job = jobs.get_job(connection, store.zone, job_id)
            assert job is not None
            jobs.update_job(connection, store.zone, job)

    await store.database.write(save_each)
    assert await store.database.read(jobs.list_jobs, store.zone, JobFilter(), 0, 1000) == listed


async def test_a_full_batch_beside_a_damaged_one_is_planned(store: Store) -> None:
    (bad,) = await bad_jobs(store, [("executor_param", NOT_UTF8)])
    row = {**JOB_COLUMNS, "schedule_type": "FIX_RATE", "schedule_conf": "3600", "anchor_ms": NOW_MS - 250}
    await store.database.write(lambda c: c.execute(insert(job_info), [row] * 900))
    assert len(await Claims(store).planned()) == 900
    assert await events_of(store, bad) == ["job.corrupt"]
