"""Slices with runs of many jobs are settled in parts: each run is in the statistics once, whatever comes in between."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import insert, select, update

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.report import SLICE, RunCounts, RunStatistics, Slice
from jobwheel.admin.services import slices as pace
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.settling import Settling
from jobwheel.admin.store import Connection, reports
from jobwheel.admin.store.statistics import runs_statistics, settle_with_statistics
from jobwheel.admin.store.tables import job_day, job_info, job_log, run_slice
from tests.support.server_statements import conflict
from tests.support.store import JOB_COLUMNS, Store

JOBS = 2 * pace.SLICE
TEN = datetime(2026, 11, 27, 10, 0)  # noqa: DTZ001 - wall time of the installation
LATER = TEN + SLICE
GOOD = {"trigger_code": 200, "handle_code": 200, "outcome": "succeeded"}


def settling(store: Store) -> Settling:
    return Settling(store.database, PacedReads(store.database, store.clock), pause_s=0)


async def with_runs(store: Store) -> None:
    """Two slices that are over, in each a run of every job."""
    rows = [
        {"job_group": 1, "job_id": job, "trigger_time": begins, **GOOD}
        for begins in (TEN, LATER)
        for job in range(1, JOBS + 1)
    ]
    counted = Slice(store.clock.now(), is_settled=True, counts={GroupId(1): RunCounts(0, JOBS, 0)})
    await store.database.write(lambda connection: connection.execute(insert(job_log), rows))
    await store.database.write(reports.store_slices, {TEN: counted, LATER: counted})


async def slices_of(store: Store) -> dict[datetime, Slice]:
    return await store.database.read(reports.load_slices)


async def runs_by_job(store: Store) -> dict[int, str]:
    def read(connection: Connection) -> dict[int, str]:
        return {row.job_id: row.outcomes for row in connection.execute(select(job_day))}

    return await store.database.read(read)


def _insert_job(connection: Connection, job_id: int) -> None:
    connection.execute(insert(job_info).values({**JOB_COLUMNS, "id": job_id}))


@pytest.fixture
def breaks_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The second part is the last one: the process dies after it."""
    real, parts = pace.Slices.change, iter(range(99))

    async def change(self: pace.Slices, *args: Any, **kwargs: Any) -> Any:
        if next(parts) == 1:
            raise ConnectionError("the process dies")
        return await real(self, *args, **kwargs)

    with monkeypatch.context() as patched:
        patched.setattr(pace.Slices, "change", change)
        yield


async def test_parts_come_to_the_whole(store: Store) -> None:
    await with_runs(store)
    await settling(store).settle(await slices_of(store))
    assert await runs_by_job(store) == dict.fromkeys(range(1, JOBS + 1), '{"succeeded": 2}')
    assert all(each.is_settled for each in (await slices_of(store)).values())


async def test_what_was_broken_off_goes_on_where_it_was(store: Store, breaks_off: None) -> None:
    await with_runs(store)
    with pytest.raises(ConnectionError):
        await settling(store).settle(await slices_of(store))
    found = await slices_of(store)
    assert {(each.is_settled, each.settled_job) for each in found.values()} == {(False, pace.SLICE)}
    assert set(await runs_by_job(store)) == set(range(1, pace.SLICE + 1))
    await settling(store).settle(found)
    assert await runs_by_job(store) == dict.fromkeys(range(1, JOBS + 1), '{"succeeded": 2}')


async def test_meanwhile_the_statistics_of_each_job_are_whole(store: Store, breaks_off: None) -> None:
    await with_runs(store)
    with pytest.raises(ConnectionError):
        await settling(store).settle(await slices_of(store))
    for job in (pace.SLICE, pace.SLICE + 1):
        await store.database.write(_insert_job, job)
        found = await Reports(store.database, store.clock, store.zone).of_job(JobId(job), 1)
        assert found[TEN.date()].outcomes == {"succeeded": 2}


async def test_two_nodes_settle_each_part_once(store: Store, breaks_off: None) -> None:
    await with_runs(store)
    before = await slices_of(store)
    with pytest.raises(ConnectionError):
        await settling(store).settle(before)
    # This one does not know of the part that is done.
    await settling(store).settle(before)
    assert set(await runs_by_job(store)) == set(range(1, pace.SLICE + 1))


async def test_slices_that_are_not_equally_far_are_settled_by_themselves(store: Store) -> None:
    await with_runs(store)
    far = update(run_slice).where(run_slice.c.slice_start == reports.slice_name(LATER)).values(settled_job=JOBS - 1)
    await store.database.write(lambda connection: connection.execute(far))
    await settling(store).settle(await slices_of(store))
    runs = await runs_by_job(store)
    assert (runs[1], runs[JOBS]) == ('{"succeeded": 1}', '{"succeeded": 2}')
    assert all(each.is_settled for each in (await slices_of(store)).values())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_program_that_reads_the_statistics_is_small(store: Store) -> None:
    await with_runs(store)
    steps = await store.database.read(_steps)
    # It had a table for each of 250 places where a bucket was looked for, and with them five megabytes for each read.
    assert steps.count("OpenEphemeral") <= 2
    assert len(steps) < 3000


def _steps(connection: Connection) -> list[str]:
    """The operations that SQLite makes of the query."""
    statements: list[str] = []
    driver: Any = connection.connection.driver_connection
    driver.set_trace_callback(statements.append)
    assert len(runs_statistics(connection, TEN, LATER)) == JOBS
    driver.set_trace_callback(None)
    return [row[1] for row in connection.exec_driver_sql(f"EXPLAIN {statements[-1]}")]


async def test_a_part_that_is_written_again_after_a_conflict_is_in_the_statistics_once(server_store: Store) -> None:
    store, tries = server_store, iter(range(9))
    found = {JobId(1): RunStatistics(GroupId(1), {"succeeded": 3})}
    counted = Slice(store.clock.now(), is_settled=True, counts={GroupId(1): RunCounts(0, 3, 0)})
    await store.database.write(reports.store_slices, {TEN: counted, LATER: counted})
    assert await store.database.write(settle_with_statistics, [TEN], found)

    def settle(connection: Connection) -> bool:
        settled = settle_with_statistics(connection, [LATER], found)
        if next(tries) < 2:
            conflict(connection)
        return settled

    assert await store.database.write(settle)
    assert next(tries) == 3
    assert await runs_by_job(store) == {1: '{"succeeded": 6}'}
