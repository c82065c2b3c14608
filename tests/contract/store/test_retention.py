"""What is older than it is to be kept goes, in slices; what is not done stays."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.services import retention
from jobwheel.admin.services.retention import KeptDays, Retention
from jobwheel.admin.services.slices import SLICE
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection, old_runs, turns
from jobwheel.admin.store.tables import event, job_day, job_info, job_log, session
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.followups import broadcast, failed, runs_of, send, succeeded
from tests.support.store import NOW_MS, Store

_DAY_MS = 86_400_000
OLD_MS = NOW_MS - 31 * _DAY_MS
DONE = {"trigger_code": 200, "handle_code": 200, "outcome": "succeeded"}


def keeper(store: Store, kept: KeptDays | None = None, node_id: int = 1) -> Retention:
    turn = Turn("retention", store.database, lambda: NodeId(node_id))
    return Retention(store.database, store.clock, store.zone, kept or KeptDays(), turn, pause_s=0)


async def write_runs(store: Store, count: int, at_ms: int, job: int = 1, **columns: object) -> None:
    row = {"job_group": 1, "job_id": job, "trigger_time": store.zone.to_wall(at_ms), **(columns or DONE)}
    await store.database.write(lambda connection: connection.execute(insert(job_log), [row] * count))


async def counts(store: Store) -> dict[int, int]:
    """Runs by job."""

    def read(connection: Connection) -> Sequence[Any]:
        return connection.execute(select(job_log.c.job_id, func.count()).group_by(job_log.c.job_id)).all()

    rows = await store.database.read(read)
    return {row[0]: row[1] for row in rows}


async def count(store: Store, table: Any) -> int:
    return await store.database.read(lambda c: c.execute(select(func.count()).select_from(table)).scalar_one())


async def test_runs_go_after_the_days_of_the_setting(store: Store) -> None:
    await write_runs(store, 2 * SLICE + 7, OLD_MS)
    await write_runs(store, 5, NOW_MS - 29 * _DAY_MS, job=2)
    assert await keeper(store).run_once() == 2 * SLICE + 7
    assert await counts(store) == {2: 5}
    assert await keeper(store, KeptDays(runs=1)).run_once() == 5


async def test_for_ever_means_for_ever(store: Store) -> None:
    await write_runs(store, 3, 0)
    assert await keeper(store, KeptDays(runs=0, events=0, sessions=0)).run_once() == 0


OPEN: list[dict[str, Any]] = [
    {"trigger_code": 0, "handle_code": 0, "phase": "pending"},
    {"trigger_code": 0, "handle_code": 0, "phase": "sending"},
    {"trigger_code": 0, "handle_code": 0, "phase": "unconfirmed"},
    {"trigger_code": 0, "handle_code": 0, "phase": "accepted"},
    # Runs of a Java admin: not sent yet, and under way.
    {"trigger_code": 0, "handle_code": 0},
    {"trigger_code": 200, "handle_code": 0},
]


async def test_what_is_not_done_stays_however_old_it_is(store: Store) -> None:
    for job, columns in enumerate(OPEN, 1):
        await write_runs(store, 1, OLD_MS, job=job, **columns)
    await write_runs(store, 1, OLD_MS, job=9, trigger_code=500, handle_code=0, outcome="failed")
    await write_runs(store, 1, OLD_MS, job=10, trigger_code=200, handle_code=500)
    assert await keeper(store).run_once() == 2
    assert await counts(store) == dict.fromkeys(range(1, len(OPEN) + 1), 1)


async def test_a_run_that_was_open_goes_a_day_after_it_is_done(store: Store) -> None:
    assert isinstance(store.clock, FakeClock)
    await write_runs(store, 1, OLD_MS, **OPEN[3])
    kept = keeper(store)
    assert await kept.run_once() == 0
    await store.database.write(lambda c: c.execute(update(job_log).values(phase=None, handle_code=200)))
    assert await kept.run_once() == 0
    store.clock.step(86_400)
    assert await kept.run_once() == 1


async def test_a_job_may_keep_its_runs_for_a_time_of_its_own(store: Store) -> None:
    jobs = {days: await store.job(retention_days=days) for days in (None, 0, 1, 90)}
    for job_id in jobs.values():
        for days in (100, 50, 10, 0):
            await write_runs(store, SLICE // 3, NOW_MS - days * _DAY_MS, job=job_id)
    # In the order of their ids a job's runs are in that of their times, but for the slices' sake not all in one.
    removed = await keeper(store).run_once()
    assert await counts(store) == {
        jobs[None]: 2 * (SLICE // 3),
        jobs[0]: 4 * (SLICE // 3),
        jobs[1]: SLICE // 3,
        jobs[90]: 3 * (SLICE // 3),
    }
    assert removed == 6 * (SLICE // 3)


async def test_a_job_of_its_own_time_whose_time_is_taken_away_follows_within_a_day(store: Store) -> None:
    assert isinstance(store.clock, FakeClock)
    job_id = await store.job(retention_days=0)
    await write_runs(store, SLICE + 1, OLD_MS, job=job_id)
    kept = keeper(store)
    await kept.run_once()
    await store.database.write(lambda c: c.execute(update(job_info).values(retention_days=None)))
    store.clock.step(86_400)
    assert await kept.run_once() == SLICE + 1


async def test_a_later_pass_goes_on_where_the_one_before_ended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await write_runs(store, 3 * SLICE, OLD_MS)
    kept = keeper(store)
    monkeypatch.setattr(retention, "_PASS_S", 0.0)
    assert await kept.run_once() == 0
    monkeypatch.undo()
    assert await kept.run_once() == 3 * SLICE


async def test_two_nodes_at_once_remove_each_row_once(server_store: Store) -> None:
    await write_runs(server_store, 3 * SLICE, server_store.clock.now() - 31 * _DAY_MS)
    removed = await asyncio.gather(*(keeper(server_store, node_id=node_id).run_once() for node_id in (1, 2)))
    assert sum(removed) == 3 * SLICE
    assert await counts(server_store) == {}


async def test_a_row_is_removed_once_even_if_two_nodes_chose_it(server_store: Store) -> None:
    await write_runs(server_store, SLICE, OLD_MS)
    before = server_store.zone.to_wall(NOW_MS)
    found = await server_store.database.read(old_runs.old_runs, before, None, frozenset[JobId](), SLICE)
    removed = await asyncio.gather(
        *(server_store.database.write(old_runs.delete_done, found.run_ids) for _ in range(4))
    )
    assert sorted(removed) == [0, 0, 0, SLICE]


async def test_events_sessions_and_statistics_go_as_well(store: Store) -> None:
    def write(connection: Connection) -> None:
        events = [{"at_ms": NOW_MS - days * _DAY_MS, "kind": "k", "actor": "a", "details": "{}"} for days in (0, 9, 11)]
        connection.execute(insert(event), events)
        ends = [NOW_MS - days * _DAY_MS for days in (-1, 1, 3)]
        sessions = [
            {"token_hash": str(n), "user_id": 1, "created_ms": 0, "expires_ms": ends_ms}
            for n, ends_ms in enumerate(ends)
        ]
        connection.execute(insert(session), sessions)
        texts = {"outcomes": "{}", "lateness": "[0,[]]", "durations": "[0,[]]"}
        days = ("2026-11-27", "2026-10-28", "2026-10-27")
        connection.execute(insert(job_day), [{"job_id": 1, "day": day, "job_group": 1, **texts} for day in days])

    await store.database.write(write)
    assert await keeper(store, KeptDays(events=10, sessions=2)).run_once() == 3
    assert [await count(store, table) for table in (event, session, job_day)] == [2, 2, 2]


async def test_a_turn_is_one_nodes_until_it_ends_or_falls_silent(store: Store) -> None:
    async def take(node_id: int, now_ms: int) -> bool:
        return await store.database.write(turns.take_turn, "work", NodeId(node_id), now_ms, 30_000)

    assert await take(1, NOW_MS)
    assert await take(1, NOW_MS + 20_000)
    assert not await take(2, NOW_MS + 49_999)
    assert await take(2, NOW_MS + 50_000)
    # Only who has it can end it.
    await store.database.write(turns.end_turn, "work", NodeId(1))
    assert not await take(1, NOW_MS + 50_000)
    await store.database.write(turns.end_turn, "work", NodeId(2))
    assert await take(1, NOW_MS + 50_000)
    # Taken while the clock was years ahead.
    assert await take(2, NOW_MS - 10**9)


async def test_shards_stay_until_the_last_of_them_has_ended_and_children_start(store: Store) -> None:
    node, child = await store.node(), await store.job()
    parent = await store.job(child_jobid=str(child), executor_fail_retry_count=1)
    shards = await broadcast(store, node, parent, 3)
    await store.apply(node, succeeded(shards[0]), succeeded(shards[1]))
    (retry,) = (await store.apply(node, failed(shards[2]))).pending
    await write_runs(store, 3, OLD_MS, job=7)
    every_run = [*shards, retry.id, *(row["id"] for row in await runs_of(store, 7))]
    assert await store.database.write(old_runs.delete_done, every_run) == 3
    await send(store, node, retry.id)
    await store.apply(node, succeeded(retry.id))
    assert len(await runs_of(store, child)) == 1
    assert await store.database.write(old_runs.delete_done, every_run) == 4
