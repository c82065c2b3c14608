"""Clean-ups that people ask for: what goes, what stays, how far they are, and that they go on after a restart."""

import asyncio
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select

from jobwheel.admin.domain.clean_up import CleanUp, CleanUpState, CleanUpWhich
from jobwheel.admin.domain.ids import GroupId, JobId, NodeId
from jobwheel.admin.services.clean_ups import CleanUps, CleanUpWish, CleanUpWork, months_before
from jobwheel.admin.services.slices import SLICE
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import clean_ups
from jobwheel.admin.store.tables import event
from jobwheel.kernel.fake_clock import FakeClock
from tests.contract.store.test_retention import OPEN, counts, write_runs
from tests.support.eventually import eventually
from tests.support.store import NOW_MS, Store

_DAY_MS = 86_400_000


def work(store: Store, node_id: int = 1, pause_s: float = 0) -> CleanUpWork:
    turn = Turn("clean_ups", store.database, lambda: NodeId(node_id))
    return CleanUpWork(store.database, store.clock, turn, pause_s)


def asking(store: Store) -> CleanUps:
    return CleanUps(store.database, store.clock, store.zone)


async def clean_up(store: Store, which: str, group: int | None = None, job: int | None = None) -> CleanUp:
    """Ask for it, have it done, and tell how it ended."""
    wish = CleanUpWish(which, None if group is None else GroupId(group), None if job is None else JobId(job))
    asked = await asking(store).ask(wish, actor="ada")
    assert asked.state is CleanUpState.WAITING
    await work(store).run_once()
    return await asking(store).get(asked.id)


async def events(store: Store) -> list[tuple[str, str]]:
    def read(connection: Any) -> list[tuple[str, str]]:
        return [(row.kind, row.actor) for row in connection.execute(select(event).order_by(event.c.id))]

    return await store.database.read(read)


async def test_everything_that_is_done_goes(store: Store) -> None:
    await write_runs(store, 2 * SLICE + 1, NOW_MS)
    await write_runs(store, 1, NOW_MS, job=2, **OPEN[3])
    done = await clean_up(store, "all")
    assert (done.state, done.deleted, done.about) == (CleanUpState.DONE, 2 * SLICE + 1, 2 * SLICE + 2)
    assert done.ended_ms is not None
    assert await counts(store) == {2: 1}
    assert await events(store) == [("run.clean_up_requested", "ada"), ("run.clean_up_ended", "system")]


async def test_runs_that_come_after_the_wish_stay(store: Store) -> None:
    await write_runs(store, 3, NOW_MS)
    await asking(store).ask(CleanUpWish("all"), actor="ada")
    await write_runs(store, 2, NOW_MS, job=2)
    await work(store).run_once()
    assert await counts(store) == {2: 2}


@pytest.mark.parametrize(
    ("which", "left"), [("older_than_1_month", 1), ("older_than_3_months", 2), ("older_than_1_year", 4)]
)
async def test_older_runs_go(store: Store, which: str, left: int) -> None:
    for days in (400, 200, 95, 32, 30):
        await write_runs(store, 1, NOW_MS - days * _DAY_MS)
    # Out of the order of the ids.
    await write_runs(store, 1, NOW_MS - 401 * _DAY_MS)
    done = await clean_up(store, which)
    assert (done.state, done.deleted) == (CleanUpState.DONE, 6 - left)
    assert await counts(store) == {1: left}


async def test_the_newest_runs_of_whom_it_is_about_stay(store: Store) -> None:
    group = await store.group()
    job_id = await store.job(job_group=group)
    await write_runs(store, 600, NOW_MS, job=99, **_done(group + 1))
    await write_runs(store, 1002, NOW_MS, job=job_id, **_done(group))
    await write_runs(store, 600, NOW_MS, job=99, **_done(group + 1))
    assert (await clean_up(store, "but_last_1000", job=job_id)).deleted == 2
    assert (await clean_up(store, "but_last_1000", group=group)).deleted == 0
    await write_runs(store, 5, NOW_MS, job=98, **_done(group))
    assert (await clean_up(store, "but_last_1000", group=group)).deleted == 5
    assert await counts(store) == {98: 5, 99: 1200, job_id: 995}
    assert (await clean_up(store, "but_last_1000")).deleted == 1200
    assert (await clean_up(store, "but_last_100000")).deleted == 0


def _done(group: int) -> dict[str, Any]:
    return {"trigger_code": 200, "handle_code": 200, "job_group": group}


@pytest.mark.parametrize("about", ["group", "job"])
async def test_what_is_anothers_stays(store: Store, about: str) -> None:
    group = await store.group()
    job_id = await store.job(job_group=group)
    await write_runs(store, SLICE + 5, NOW_MS, job=job_id, **_done(group))
    await write_runs(store, 7, NOW_MS, job=99, **_done(group + 1))
    done = await clean_up(store, "all", **{about: group if about == "group" else job_id})
    assert (done.deleted, done.about) == (SLICE + 5, SLICE + 5)
    assert await counts(store) == {99: 7}


async def test_an_empty_log_is_cleaned_at_once(store: Store) -> None:
    for which in CleanUpWhich:
        done = await clean_up(store, which)
        assert (done.state, done.deleted, done.about) == (CleanUpState.DONE, 0, 0)


async def test_it_is_seen_how_far_it_is_and_a_restart_goes_on(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FakeClock)
    await write_runs(store, 3 * SLICE, NOW_MS)
    asked = await asking(store).ask(CleanUpWish("all"), actor="ada")
    stopped = asyncio.create_task(work(store, pause_s=1).run_once())
    await eventually(lambda: bool(clock.waiting))
    seen = await asking(store).get(asked.id)
    assert (seen.state, seen.deleted, seen.about) == (CleanUpState.RUNNING, SLICE, 3 * SLICE)
    stopped.cancel()
    await asyncio.gather(stopped, return_exceptions=True)
    # Another node, or this one after its restart.
    await work(store, node_id=2).run_once()
    seen = await asking(store).get(asked.id)
    assert (seen.state, seen.deleted) == (CleanUpState.DONE, 3 * SLICE)
    assert await counts(store) == {}


async def test_it_can_be_cancelled(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FakeClock)
    await write_runs(store, 3 * SLICE, NOW_MS)
    asked = await asking(store).ask(CleanUpWish("all"), actor="ada")
    doing = asyncio.create_task(work(store, pause_s=1).run_once())
    await eventually(lambda: bool(clock.waiting))
    cancelled = await asking(store).cancel(asked.id, actor="bob")
    assert (cancelled.state, cancelled.deleted) == (CleanUpState.CANCELLED, SLICE)
    await clock.advance(1)
    await doing
    assert await counts(store) == {1: 2 * SLICE}
    # Again: it stays as it ended.
    assert await asking(store).cancel(asked.id, actor="bob") == cancelled
    assert await events(store) == [("run.clean_up_requested", "ada"), ("run.clean_up_ended", "bob")]


async def test_a_slice_that_another_node_has_done_is_not_counted_again(store: Store) -> None:
    await write_runs(store, 5, NOW_MS)
    asked = await asking(store).ask(CleanUpWish("all"), actor="ada")
    bounds = await store.database.read(clean_ups.find_bounds, asked.id)
    await store.database.write(clean_ups.begin, asked.id, bounds, NOW_MS)
    part = await store.database.read(clean_ups.next_part, asked.id, 3)
    assert await store.database.write(clean_ups.clean, asked.id, part, NOW_MS)
    assert not await store.database.write(clean_ups.clean, asked.id, part, NOW_MS)
    assert (await asking(store).get(asked.id)).deleted == 3


@pytest.mark.parametrize(
    ("day", "months", "before"),
    [
        ("2026-03-31", 1, "2026-02-28"),
        ("2026-01-15", 1, "2025-12-15"),
        ("2026-11-27", 12, "2025-11-27"),
        ("2026-08-31", 6, "2026-02-28"),
        ("2026-12-31", 3, "2026-09-30"),
    ],
)
def test_months_are_those_of_the_calendar(day: str, months: int, before: str) -> None:
    assert months_before(datetime.fromisoformat(day), months) == datetime.fromisoformat(before)
