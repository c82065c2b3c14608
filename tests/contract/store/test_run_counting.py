"""The counts are followed from run to run, and equal a GROUP BY of the log after each pass, whatever happened."""

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.report import Slice
from jobwheel.admin.services.clean_ups import CleanUps, CleanUpWish, CleanUpWork
from jobwheel.admin.services.deleted_jobs import DeletedJobs, remove_slice
from jobwheel.admin.services.live_slices import LiveSlices, TimeReader
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.run_counting import RunCounting
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection, clean_ups, reports, run_counts
from jobwheel.admin.store.settings_table import DELETED_JOB_PREFIX, list_settings, write_setting
from jobwheel.admin.store.tables import job_log, run_slice
from tests.contract.store.test_reports import (
    BAD,
    GOOD,
    JAVA_GOOD,
    JAVA_OPEN,
    OPEN,
    STATES,
    TODAY,
    by_group,
    clock_of,
    counting,
    grouped,
    stored_days,
    write_runs,
)
from tests.support.store import NOW_MS, Store

_DAY_MS = 86_400_000
_HOUR_MS = 3_600_000
LOST = {"trigger_code": 200, "handle_code": 500, "outcome": "lost"}
_AN_HOUR_AGO = datetime(2026, 11, 27, 9, 30)  # noqa: DTZ001 - wall time of the installation


async def change(store: Store, condition: Any, values: dict[str, object]) -> None:
    await store.database.write(lambda c: c.execute(update(job_log).where(condition).values(values)))


async def check(store: Store, *keepers: RunCounting) -> None:
    for keeper in keepers:
        await keeper.run_once()
        assert await by_group(store) == await grouped(store)


def live(store: Store) -> LiveSlices:
    reads = PacedReads(store.database, store.clock)
    return LiveSlices(reads, store.zone, TimeReader(reads))


async def ids_of(store: Store, condition: Any) -> list[int]:
    query = select(job_log.c.id).where(condition).order_by(job_log.c.id)
    return await store.database.read(lambda c: list(c.execute(query).scalars()))


async def test_what_has_ended_is_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await write_runs(store, *[(NOW_MS - 200_000, GOOD)] * 5, (NOW_MS - 200_000, OPEN))
    keeper = counting(store)
    await check(store, keeper)
    ranges: list[tuple[int, int | None]] = []

    def count_by_id(connection: Connection, after_id: int, up_to_id: int | None = None) -> run_counts.Counted:
        ranges.append((after_id, up_to_id))
        return run_counts.count_by_id(connection, after_id, up_to_id)

    monkeypatch.setattr("jobwheel.admin.services.live_slices.count_by_id", count_by_id)
    await write_runs(store, (NOW_MS, GOOD), (NOW_MS, OPEN))
    # Nobody does that: it shows that the run is not looked at.
    await change(store, job_log.c.id == (await ids_of(store, job_log.c.handle_code == 200))[0], {"handle_code": 500})
    await change(store, job_log.c.phase.is_not(None), {"phase": None, **GOOD})
    await keeper.run_once()
    assert (await stored_days(store))[TODAY] == (0, 8, 0)
    clock_of(store).step(60)
    await keeper.run_once()
    newest = (await ids_of(store, job_log.c.id > 0))[-1]
    assert ranges == [(newest - 2, None), (newest - 2, newest), (newest, None)]


async def test_runs_of_the_last_seconds_are_not_held_by_their_ids(store: Store) -> None:
    await write_runs(store, (NOW_MS - 14_000, OPEN), (NOW_MS - 16_000, OPEN), (NOW_MS - 120_000, OPEN))
    known = live(store)
    await known.follow(NOW_MS)
    quarter = datetime(2026, 11, 27, 10, 20)  # noqa: DTZ001 - wall time of the installation
    await known.read([quarter], {})
    assert len(known.counts()[quarter].open_ids) == 3
    await known.follow(NOW_MS)
    assert [len(each.open_ids) for each in known._slices.values()] == [3]


async def test_a_run_that_is_committed_late_is_counted(store: Store) -> None:
    await write_runs(store, *[(NOW_MS - 60_000, GOOD)] * 9)
    missing = (await ids_of(store, job_log.c.id > 0))[4]
    rows = await store.database.read(
        lambda c: c.execute(select(job_log).where(job_log.c.id == missing)).mappings().all()
    )
    await store.database.write(lambda c: c.execute(delete(job_log).where(job_log.c.id == missing)))
    keeper = counting(store)
    await check(store, keeper, keeper)
    await store.database.write(lambda c: c.execute(insert(job_log).values(dict(rows[0]))))
    await check(store, keeper)
    # What is missing for long was removed, or never came.
    clock_of(store).step(300)
    await check(store, keeper)
    assert keeper._live.counted_to == missing + 4


@pytest.mark.parametrize("ago_ms", [1000, 30_000, 300_000, _DAY_MS], ids=["now", "soon", "followed", "settled"])
async def test_a_late_result_is_seen_by_the_next_pass(store: Store, ago_ms: int) -> None:
    await write_runs(store, (NOW_MS - ago_ms, LOST), (NOW_MS - ago_ms, GOOD), (NOW_MS - ago_ms, BAD))
    first, second = counting(store), counting(store, 2)
    await check(store, first, second)
    clock_of(store).step(20)
    await change(store, job_log.c.outcome == "lost", dict(GOOD))
    # By a node that has followed the run, by one that has not, and by one that was not there.
    await check(store, second, first, counting(store, 3))


async def test_runs_that_come_into_a_settled_slice_are_counted_as_they_end(store: Store) -> None:
    """As those of a Java admin do whose clock is behind."""
    await write_runs(store, (NOW_MS - _HOUR_MS, JAVA_GOOD))
    keeper = counting(store)
    await check(store, keeper)
    await write_runs(store, (NOW_MS - _HOUR_MS, JAVA_OPEN), (NOW_MS - _HOUR_MS, JAVA_GOOD))
    await check(store, keeper)
    assert (await stored_days(store))[TODAY] == (1, 2, 0)
    await change(store, job_log.c.handle_code == 0, {"handle_code": 200})
    await check(store, keeper)
    assert (await stored_days(store))[TODAY] == (0, 3, 0)


@pytest.mark.parametrize("at_once", [3, 4, 200])
async def test_runs_of_a_deleted_job_are_counted_no_more(store: Store, at_once: int) -> None:
    every = [(NOW_MS - ago_ms, GOOD) for ago_ms in (1000, 300_000, _HOUR_MS, _DAY_MS)]
    await write_runs(store, *every, job=7)
    await write_runs(store, *every, job=8)
    first, second = counting(store), counting(store, 2)
    await check(store, first, second)
    name = f"{DELETED_JOB_PREFIX}7"
    await store.database.write(write_setting, name, "")
    while await store.database.read(list_settings, DELETED_JOB_PREFIX):
        await store.database.write(remove_slice, name, at_once)
    await check(store, first, second)
    assert sum(sum(each) for each in (await stored_days(store)).values()) == 4


async def test_what_removes_no_run_has_nothing_counted_anew(store: Store) -> None:
    await write_runs(store, (NOW_MS, OPEN))
    await counting(store).run_once()
    await store.database.write(write_setting, f"{DELETED_JOB_PREFIX}7", "")
    await DeletedJobs(store.database, pause_s=0).run_once()
    await CleanUps(store.database, store.clock, store.zone).ask(CleanUpWish("all"), actor="ada")
    turn = Turn("clean_ups", store.database, lambda: NodeId(1))
    await CleanUpWork(store.database, store.clock, turn, pause_s=0).run_once()
    slices = await store.database.read(reports.load_slices)
    assert {each.recounts for each in slices.values()} == {0}


async def test_runs_that_a_clean_up_removed_before_it_was_cancelled_are_counted_no_more(store: Store) -> None:
    await write_runs(store, *[(NOW_MS - ago_ms, GOOD) for ago_ms in (1000, _HOUR_MS, _DAY_MS)])
    keeper = counting(store)
    await check(store, keeper)
    asking = CleanUps(store.database, store.clock, store.zone)
    asked = await asking.ask(CleanUpWish("all"), actor="ada")
    bounds = await store.database.read(clean_ups.find_bounds, asked.id)
    await store.database.write(clean_ups.begin, asked.id, bounds, NOW_MS)
    part = await store.database.read(clean_ups.next_part, asked.id, 2)
    assert await store.database.write(clean_ups.clean, asked.id, part, NOW_MS)
    assert (await asking.cancel(asked.id, actor="ada")).deleted == 2
    await check(store, keeper)


async def test_what_the_retention_removes_stays_counted(store: Store) -> None:
    ago = (300_000, _DAY_MS - _HOUR_MS, _DAY_MS + _HOUR_MS, 2 * _DAY_MS)
    await write_runs(store, *((NOW_MS - ago_ms, state) for ago_ms in ago for state in (GOOD, BAD)))
    # A slice that never settles.
    await write_runs(store, (NOW_MS - _DAY_MS - _HOUR_MS, OPEN))
    turn = Turn("run_counting", store.database, lambda: NodeId(1))
    keepers = [RunCounting(store.database, store.clock, store.zone, turn, retention_days=1) for _ in range(2)]
    await keepers[0].run_once()
    before = await stored_days(store)
    old = store.zone.to_wall(NOW_MS - _DAY_MS)
    gone = delete(job_log).where(job_log.c.trigger_time < old, job_log.c.handle_code != 0)
    await store.database.write(lambda c: c.execute(gone))
    await store.database.write(reports.recount_slices)
    for keeper in keepers:
        await keeper.run_once()
        assert await stored_days(store) == before
    # What somebody removes of younger ones does not.
    await store.database.write(lambda c: c.execute(delete(job_log).where(job_log.c.handle_code == 500)))
    await store.database.write(reports.recount_slices)
    await keepers[0].run_once()
    assert sum(each[2] for each in (await stored_days(store)).values()) == sum(each[2] for each in before.values()) - 2


async def test_what_was_removed_while_it_was_counted_is_counted_anew(store: Store) -> None:
    nine = datetime(2026, 11, 27, 9, 0)  # noqa: DTZ001 - wall time of the installation
    counted = {nine: Slice(NOW_MS, is_settled=False, counts={})}
    await store.database.write(reports.store_slices, counted)
    await store.database.write(reports.recount_slices)
    await store.database.write(reports.store_slices, counted)
    found = (await store.database.read(reports.load_slices))[nine]
    assert (found.counted_ms, found.recounts) == (0, 1)
    await store.database.write(reports.store_slices, {nine: Slice(NOW_MS, False, {}, recounts=1)})
    assert (await store.database.read(reports.load_slices))[nine].counted_ms == NOW_MS


async def test_large_slices_are_looked_at_again_when_passes_have_saved_up_for_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobwheel.admin.services.run_counting._RUNS_AGAIN", 4)
    await write_runs(store, *[(NOW_MS - _HOUR_MS, GOOD)] * 10)
    # All others were looked at just now.
    keeper = counting(store)
    await keeper.run_once()
    await store.database.write(
        lambda c: c.execute(delete(run_slice).where(run_slice.c.slice_start < "2026-11-27 09:3"))
    )
    await store.database.write(lambda c: c.execute(delete(job_log)))
    failed = []
    for _ in range(40):
        clock_of(store).step(1)
        await keeper.run_once()
        failed.append((await stored_days(store))[TODAY][1])
    assert (failed[0], failed[-1]) == (10, 0)


async def test_a_pass_that_fails_leaves_nothing_half_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = counting(store)
    await write_runs(store, *[(NOW_MS - 300_000, OPEN)] * 3)
    await check(store, keeper)
    await write_runs(store, *[(NOW_MS, OPEN)] * 3)
    clock_of(store).step(60)

    def fails(*_: object) -> run_counts.Counted:
        raise ValueError("fails")

    with monkeypatch.context() as patched:
        patched.setattr("jobwheel.admin.services.live_slices.count_by_id", fails)
        with pytest.raises(ValueError, match="fails"):
            await keeper.run_once()
    await check(store, keeper)


@pytest.mark.parametrize("seed", range(3))
async def test_two_nodes_by_turns_are_exact_whatever_happens(store: Store, seed: int) -> None:
    dice = random.Random(seed)
    keepers = [counting(store, 1), counting(store, 2)]
    # Few slices: what settles one after the other takes a transaction each.
    ages = [0, 0, 0, 20_000, 60_000, 400_000, 420_000, _HOUR_MS, _DAY_MS]
    for _ in range(6):
        now_ms = clock_of(store).now()
        for group in (1, 2):
            some = [(now_ms - dice.choice(ages), dice.choice([*STATES, LOST])) for _ in range(5)]
            await write_runs(store, *some, group=group)
        await _happens(store, dice)
        if dice.random() < 0.2:
            keepers[0] = counting(store, 3)
        await check(store, dice.choice(keepers))
        clock_of(store).step(dice.choice([5, 20, 60, 700]))


async def _happens(store: Store, dice: random.Random) -> None:
    open_ids = await ids_of(store, run_counts.RUNNING)
    for run_id in dice.sample(open_ids, len(open_ids) // 3):
        await change(store, job_log.c.id == run_id, {"phase": None, **dice.choice([GOOD, BAD, LOST, JAVA_GOOD])})
    lost_ids = await ids_of(store, job_log.c.outcome == "lost")
    for run_id in dice.sample(lost_ids, len(lost_ids) // 3):
        await change(store, job_log.c.id == run_id, dict(dice.choice([GOOD, BAD])))
    pending = await ids_of(store, job_log.c.phase.is_not(None))
    # A stop removes what waits.
    removed = dice.sample(pending, len(pending) // 4)
    await store.database.write(lambda c: c.execute(delete(job_log).where(job_log.c.id.in_(removed))))
    if dice.random() < 0.3:
        gone = dice.sample(await ids_of(store, job_log.c.phase.is_(None)), 3)
        await store.database.write(_clean_up, gone)


def _clean_up(connection: Connection, run_ids: Sequence[int]) -> None:
    connection.execute(delete(job_log).where(job_log.c.id.in_(run_ids)))
    reports.recount_slices(connection)
