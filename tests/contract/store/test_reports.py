"""Daily counts and statistics: they equal what a GROUP BY over the run log says, whatever happened to the log."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from jobwheel.admin.domain.histogram import BOUNDS
from jobwheel.admin.domain.ids import GroupId, NodeId
from jobwheel.admin.domain.report import SLICE, RunCounts, Slice
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.run_counting import REPORTED_DAY, RunCounting
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection, reports, run_counts
from jobwheel.admin.store.settings_table import read_setting
from jobwheel.admin.store.tables import daily_count, job_log, job_log_report
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.store import NOW_MS, Store

TODAY = date(2026, 11, 27)
_DAY_MS = 86_400_000
OPEN: Mapping[str, object] = {"trigger_code": 0, "handle_code": 0, "phase": "accepted"}
GOOD: Mapping[str, object] = {"trigger_code": 200, "handle_code": 200, "outcome": "succeeded"}
BAD: Mapping[str, object] = {"trigger_code": 200, "handle_code": 500, "outcome": "failed"}
UNSENT: Mapping[str, object] = {"trigger_code": 500, "handle_code": 0, "outcome": "failed"}
JAVA_OPEN: Mapping[str, object] = {"trigger_code": 200, "handle_code": 0}
JAVA_GOOD: Mapping[str, object] = {"trigger_code": 200, "handle_code": 200}
STATES = (OPEN, GOOD, BAD, UNSENT, JAVA_OPEN, JAVA_GOOD)


def counting(store: Store, node_id: int = 1) -> RunCounting:
    turn = Turn("run_counting", store.database, lambda: NodeId(node_id))
    return RunCounting(store.database, store.clock, store.zone, turn)


def clock_of(store: Store) -> FakeClock:
    assert isinstance(store.clock, FakeClock)
    return store.clock


async def write_runs(store: Store, *runs: tuple[int, Mapping[str, object]], group: int = 1, job: int = 1) -> None:
    """Runs triggered at these instants, in these states."""
    every = {"trigger_code": 0, "handle_code": 0, "phase": None, "outcome": None, "sent_ms": None, "ended_ms": None}
    rows = [
        {
            **every,
            "job_group": group,
            "job_id": job,
            "trigger_time": store.zone.to_wall(at_ms),
            "planned_ms": at_ms,
            "due_ms": at_ms,
            **state,
        }
        for at_ms, state in runs
    ]
    await store.database.write(lambda connection: connection.execute(insert(job_log), rows))


async def stored_days(store: Store) -> dict[date, tuple[int, int, int]]:
    def read(connection: Connection) -> dict[date, tuple[int, int, int]]:
        rows = connection.execute(select(job_log_report).order_by(job_log_report.c.trigger_day))
        return {row.trigger_day.date(): (row.running_count, row.suc_count, row.fail_count) for row in rows}

    return await store.database.read(read)


async def grouped(store: Store) -> dict[tuple[date, int], RunCounts]:
    """The same by a plain GROUP BY of everything, the state by the reference's rule."""

    def read(connection: Connection) -> Sequence[Any]:
        columns = (job_log.c.trigger_time, job_log.c.job_group, job_log.c.trigger_code, job_log.c.handle_code)
        return connection.execute(select(*columns, func.count().label("n")).group_by(*columns)).all()

    counted: Counter[tuple[date, int, str]] = Counter()
    for row in await store.database.read(read):
        running = row.trigger_code in (0, 200) and row.handle_code == 0
        state = "running" if running else "succeeded" if row.handle_code == 200 else "failed"
        counted[row.trigger_time.date(), row.job_group, state] += row.n
    days: dict[tuple[date, int], RunCounts] = {}
    for (day, group, state), n in counted.items():
        days[day, group] = days.get((day, group), RunCounts()) + RunCounts(**{state: n})
    return days


async def by_group(store: Store) -> dict[tuple[date, int], RunCounts]:
    def read(connection: Connection) -> Sequence[Any]:
        return connection.execute(select(daily_count)).all()

    rows = await store.database.read(read)
    return {
        (date.fromisoformat(row.day), row.job_group): RunCounts(row.running_count, row.suc_count, row.fail_count)
        for row in rows
    }


async def test_the_last_three_days_are_counted(store: Store) -> None:
    for days in range(5):
        await write_runs(store, *((NOW_MS - days * _DAY_MS, state) for state in STATES), group=1 + days % 2)
    await counting(store).run_once()
    assert await stored_days(store) == {TODAY - timedelta(days=n): (2, 2, 2) for n in range(3)}


async def test_totals_equal_a_group_by_whatever_happens_to_the_runs(store: Store) -> None:
    dice = random.Random(7)
    clock = clock_of(store)
    keeper = counting(store)
    for _ in range(2):
        now_ms = clock.now()
        for group in (1, 2, 3):
            # Few slices: what settles one after the other takes a transaction each.
            runs = [(now_ms - dice.randrange(8) * _DAY_MS // 4, dice.choice(STATES)) for _ in range(20)]
            await write_runs(store, *runs, group=group)
        await keeper.run_once()
        await _end_some(store, dice)
        clock.step(61)
    await keeper.run_once()
    assert await by_group(store) == await grouped(store)
    totals = [sum(counts) for counts in (await stored_days(store)).values()]
    assert sum(totals) == 120


async def _end_some(store: Store, dice: random.Random) -> None:
    def end(connection: Connection) -> None:
        ids = connection.execute(select(job_log.c.id).where(run_counts.RUNNING)).scalars().all()
        some = dice.sample(list(ids), len(ids) // 2)
        ended = {"trigger_code": 200, "handle_code": 200, "phase": None, "outcome": "succeeded"}
        connection.execute(update(job_log).where(job_log.c.id.in_(some)).values(ended))

    await store.database.write(end)


async def test_an_end_is_seen_by_the_next_pass_however_old_the_run_is(store: Store) -> None:
    await write_runs(store, (NOW_MS - _DAY_MS, OPEN))
    keeper = counting(store)
    await keeper.run_once()
    assert (await stored_days(store))[TODAY - timedelta(days=1)] == (1, 0, 0)
    ended = {"trigger_code": 200, "handle_code": 500, "phase": None}
    await store.database.write(lambda c: c.execute(update(job_log).values(ended)))
    await keeper.run_once()
    assert (await stored_days(store))[TODAY - timedelta(days=1)] == (0, 0, 1)


async def test_days_without_an_admin_are_counted_afterwards(store: Store) -> None:
    await counting(store).run_once()
    assert await store.database.read(read_setting, REPORTED_DAY) == TODAY.isoformat()
    clock_of(store).step(10 * 86_400)
    for days in range(1, 11):
        await write_runs(store, (NOW_MS + days * _DAY_MS - 3_600_000, GOOD))
    await counting(store).run_once()
    counted = await stored_days(store)
    assert counted == {TODAY + timedelta(days=n): (0, int(n > 0), 0) for n in range(11)} | {
        TODAY - timedelta(days=n): (0, 0, 0) for n in (1, 2)
    }
    # What is over and done with is not kept.
    slices = await store.database.read(reports.load_slices)
    assert min(slices).date() == TODAY + timedelta(days=8)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_after_years_without_an_admin_a_month_is_counted(store: Store) -> None:
    await counting(store).run_once()
    clock_of(store).step(1000 * 86_400)
    await counting(store).run_once()
    days = await stored_days(store)
    assert len(days) == 3 + 31
    assert sorted(days)[3] == TODAY + timedelta(days=970)


async def test_two_nodes_at_once_do_not_conflict(server_store: Store) -> None:
    now_ms = server_store.clock.now()
    settled_ms = now_ms - 3_600_000
    await write_runs(server_store, *[(settled_ms, GOOD)] * 100, (now_ms, OPEN))
    keepers = [counting(server_store, node_id) for node_id in (1, 2)]
    await asyncio.gather(*(keeper.run_once() for keeper in keepers))
    assert await by_group(server_store) == await grouped(server_store)


async def test_a_slice_is_settled_once_and_all_of_them_or_none(store: Store) -> None:
    nine = datetime(2026, 11, 27, 9, 0)  # noqa: DTZ001 - wall time of the installation
    first, second = nine, nine + SLICE
    counted = Slice(NOW_MS, is_settled=True, counts={GroupId(1): RunCounts(0, 1, 0)})
    await store.database.write(reports.store_slices, {first: counted, second: counted})
    assert await store.database.write(reports.settle_slices, [first])
    assert not await store.database.write(reports.settle_slices, [first, second])
    assert not (await store.database.read(reports.load_slices))[second].is_settled
    assert await store.database.write(reports.settle_slices, [second])
    assert not await store.database.write(reports.settle_slices, [second])


async def test_nothing_is_written_while_nothing_happens(store: Store) -> None:
    await write_runs(store, (NOW_MS, GOOD))
    keeper = counting(store)
    await keeper.run_once()
    marked = {"update_time": datetime(2020, 1, 1)}  # noqa: DTZ001 - wall time of the installation
    await store.database.write(lambda c: c.execute(update(job_log_report).values(marked)))
    await keeper.run_once()
    times = await store.database.read(lambda c: c.execute(select(job_log_report.c.update_time)).scalars().all())
    assert set(times) == set(marked.values())


async def test_a_clean_up_has_everything_counted_anew(store: Store) -> None:
    await write_runs(store, *[(NOW_MS - _DAY_MS - n * 600_000, GOOD) for n in range(60)])
    keeper = counting(store)
    await keeper.run_once()
    await store.database.write(lambda c: c.execute(job_log.delete()))
    await store.database.write(reports.recount_slices)
    await keeper.run_once()
    assert set((await stored_days(store)).values()) == {(0, 0, 0)}
    assert await by_group(store) == {}


async def test_an_hour_that_comes_twice_is_settled_after_the_second_time(store: Store) -> None:
    store = Store(store.database, type(store.zone)("Europe/Berlin"), store.clock)
    clock = clock_of(store)
    # 2026-10-25T00:45Z: 02:45 for the first time.
    clock.step((1_792_889_100_000 - clock.now()) / 1000)
    job_id = await store.job()
    await write_runs(store, (clock.now() - 30 * 60_000, GOOD), job=job_id)
    await counting(store).run_once()
    quarter = datetime(2026, 10, 25, 2, 10)  # noqa: DTZ001 - wall time of the installation
    assert not (await store.database.read(reports.load_slices))[quarter].is_settled
    clock.step(3600)
    await write_runs(store, (clock.now() - 30 * 60_000, GOOD), job=job_id)
    await counting(store).run_once()
    assert (await store.database.read(reports.load_slices))[quarter].is_settled
    assert (await stored_days(store))[quarter.date()] == (0, 2, 0)
    statistics = await Reports(store.database, clock, store.zone).of_job(job_id, 1)
    assert statistics[quarter.date()].count == 2


@pytest.mark.parametrize("passes", [0, 1, 3])
async def test_statistics_hold_each_run_once_settled_or_not(store: Store, passes: int) -> None:
    job_id = await store.job()
    clock = clock_of(store)
    runs: list[tuple[int, Mapping[str, object]]] = []
    for n in range(100):
        at_ms = NOW_MS - n * 60_000
        runs.append((at_ms, {**GOOD, "sent_ms": at_ms + n, "ended_ms": at_ms + n + 1000}))
    runs += [
        (NOW_MS - _DAY_MS, {**BAD, "sent_ms": NOW_MS - _DAY_MS, "ended_ms": NOW_MS - _DAY_MS + 5}),
        (NOW_MS - _DAY_MS, UNSENT),
        (NOW_MS - _DAY_MS, {**BAD, "outcome": "lost", "sent_ms": NOW_MS - _DAY_MS, "ended_ms": NOW_MS}),
        (NOW_MS - 1000, {**OPEN, "sent_ms": NOW_MS}),
    ]
    await write_runs(store, *runs, job=job_id)
    await write_runs(store, (NOW_MS - 1000, GOOD), job=job_id + 1)
    for _ in range(passes):
        await counting(store).run_once()
        clock.step(61)
    days = await Reports(store.database, clock, store.zone).of_job(job_id, 2)
    today, yesterday = days[TODAY], days[TODAY - timedelta(days=1)]
    assert today.outcomes == {"succeeded": 100}
    assert (today.lateness.count, today.lateness.most_ms) == (100, 99)
    assert abs((today.lateness.percentile_ms(0.5) or 0) - 49) <= 12
    assert today.duration.most_ms == 1000
    assert 800 < (today.duration.percentile_ms(0.5) or 0) <= 1000
    assert yesterday.outcomes == {"failed": 2, "lost": 1}
    # What was lost took as long as it took to find that out, which tells nothing of the job.
    assert (yesterday.duration.count, yesterday.duration.most_ms) == (1, 5)


async def test_the_database_finds_the_same_buckets_as_the_program(store: Store) -> None:
    job_id = await store.job()
    values = sorted({0, *BOUNDS[:90], *(bound - 1 for bound in BOUNDS[:90]), *(bound + 1 for bound in BOUNDS[:90])})
    took = [{**GOOD, "sent_ms": NOW_MS + value, "ended_ms": NOW_MS + 2 * value} for value in values]
    await write_runs(store, *((NOW_MS, state) for state in took), job=job_id)
    days = await Reports(store.database, store.clock, store.zone).of_job(job_id, 1)
    expected = Counter(_bucket_by_hand(value) for value in values)
    assert days[TODAY].lateness.counts == expected
    assert days[TODAY].duration.counts == expected


def _bucket_by_hand(value: int) -> int:
    return sum(bound <= value for bound in BOUNDS)


async def test_the_report_has_every_day(store: Store) -> None:
    await write_runs(store, (NOW_MS, GOOD), (NOW_MS - _DAY_MS, BAD), group=7)
    asked = Reports(store.database, store.clock, store.zone)
    assert (await asked.daily(3)).counted_ms is None
    await counting(store).run_once()
    report = await asked.daily(4)
    assert [day.day for day in report.days] == [TODAY - timedelta(days=n) for n in (3, 2, 1, 0)]
    assert [day.total.total for day in report.days] == [0, 0, 1, 1]
    assert report.counted_ms == NOW_MS
    assert [day.total.total for day in (await asked.daily(2, GroupId(8))).days] == [0, 0]
    assert [day.total.failed for day in (await asked.daily(2, GroupId(7))).days] == [1, 0]
