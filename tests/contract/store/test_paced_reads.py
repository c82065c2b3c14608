"""Long reads leave time to others; and what is read in parts is what is read at once."""

import asyncio
from datetime import datetime, timedelta

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.report import SLICE
from jobwheel.admin.services.live_slices import TimeReader
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.run_counting import RunCounting
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection, run_counts
from tests.contract.store.test_reports import BAD, GOOD, TODAY, by_group, clock_of, counting, grouped, write_runs
from tests.support.eventually import eventually
from tests.support.store import NOW_MS, Store

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

_TEN = datetime(2026, 11, 27, 10, 0)  # noqa: DTZ001 - wall time of the installation


async def test_after_a_long_read_there_is_a_pause_as_long(store: Store) -> None:
    clock = clock_of(store)

    def work(_: Connection, takes_s: float) -> str:
        clock._pass_until(clock.monotonic() + takes_s)
        return "read"

    reads = PacedReads(store.database, clock)
    assert await reads.read(work, 0.04) == "read"
    long = asyncio.ensure_future(reads.read(work, 0.5))
    await eventually(lambda: clock.waiting == 1)
    await clock.advance(0.4)
    assert not long.done()
    await clock.advance(0.2)
    assert await long == "read"


async def test_time_is_read_in_parts_by_how_many_runs_there_are(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobwheel.admin.services.live_slices._AT_ONCE", 8)
    widths: list[timedelta] = []

    def count(connection: Connection, from_wall: datetime, until_wall: datetime, up_to_id: int | None) -> object:
        widths.append(until_wall - from_wall)
        return run_counts.count_in_time(connection, from_wall, until_wall, up_to_id)

    monkeypatch.setattr("jobwheel.admin.services.live_slices.count_in_time", count)
    await write_runs(store, *[(NOW_MS - n * 10_000, GOOD) for n in range(180)])
    found = await TimeReader(PacedReads(store.database, store.clock)).read(_TEN, _TEN + 6 * SLICE)
    assert found.runs == 180
    assert sum(widths, timedelta()) == 6 * SLICE
    assert min(widths) == timedelta(minutes=1)
    # Where there are none it goes faster.
    assert max(widths) > timedelta(minutes=10)


async def test_statistics_in_parts_hold_each_run_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobwheel.admin.services.settling._MOST_AT_ONCE", 7)
    job_id = await store.job()
    states = ({**state, "sent_ms": NOW_MS, "ended_ms": NOW_MS + 9} for _ in range(50) for state in (GOOD, BAD))
    runs = [(NOW_MS - 1_200_000 - n * 12_000, state) for n, state in enumerate(states)]
    await write_runs(store, *runs, job=job_id)
    turn = Turn("run_counting", store.database, lambda: NodeId(1))
    await RunCounting(store.database, store.clock, store.zone, turn).run_once()
    statistics = await Reports(store.database, store.clock, store.zone).of_job(job_id, 1)
    assert statistics[TODAY].outcomes == {"succeeded": 50, "failed": 50}
    assert statistics[TODAY].lateness.count == 100


async def test_a_pass_that_has_read_enough_leaves_the_rest_to_the_next(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobwheel.admin.services.run_counting._MOST_RUNS", 10)
    monkeypatch.setattr("jobwheel.admin.services.run_counting._MANY_AT_ONCE", 5)
    await write_runs(store, *[(NOW_MS - n * 1_000_000, GOOD) for n in range(100)])
    keeper = counting(store)
    passes = 0
    while await by_group(store) != await grouped(store):
        await keeper.run_once()
        passes += 1
        assert passes < 20
    assert passes > 3
