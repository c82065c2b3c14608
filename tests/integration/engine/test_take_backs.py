"""Runs of which nothing was written anywhere are pending again, whatever the database does, however the stop goes."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.domain.writes import Settlement
from jobwheel.admin.store import run_log
from jobwheel.admin.store.errors import DatabaseUnusableError, UnknownCommitError
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin, live_admin, until
from tests.support.recording_executor import RecordingExecutor, hang
from tests.support.recoveries import looked

Write = Callable[..., Any]


def replace_write(live: LiveAdmin, monkeypatch: pytest.MonkeyPatch, of: Write, instead: Write) -> None:
    """Have `instead` called, with the real `write`, for writes of the function."""
    write = live.admin.database.write

    async def replaced(work: Write, *args: Any) -> Any:
        return await (instead(write, work, *args) if work is of else write(work, *args))

    monkeypatch.setattr(live.admin.database, "write", replaced)


class LateWrite:
    """To be called instead of a write: it begins, and goes on once the database is back."""

    def __init__(self) -> None:
        self.begun, self.is_back = asyncio.Event(), asyncio.Event()

    async def __call__(self, write: Write, work: Write, *args: Any) -> Any:
        self.begun.set()
        await self.is_back.wait()
        return await write(work, *args)


def states(path: Path) -> list[tuple[str, bool]]:
    """Phase and lack of an owner of every run of a database whose admin is stopped."""
    connection = sqlite3.connect(path / "jobwheel.db")
    try:
        return connection.execute("SELECT phase, owner IS NULL FROM xxl_job_log").fetchall()
    finally:
        connection.close()


async def vanished(live: LiveAdmin) -> RecordingExecutor:
    """An executor that has registered and is gone."""
    async with live.executor() as gone:
        await gone.register()
        return gone


async def test_what_was_to_go_on_to_the_next_address_when_the_stop_came(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = asyncio.Event()

    async def never(*_: Any) -> None:
        moving.set()
        await asyncio.Event().wait()

    async with live_admin(tmp_path / "data") as live, live.executor() as alive:
        gone = await vanished(live)
        await alive.register()
        replace_write(live, monkeypatch, run_log.redirect, never)
        await write_due(live, await live.job(route_strategy="FIRST" if gone.address < alive.address else "LAST"), 3)
        await asyncio.wait_for(moving.wait(), 5)
    assert alive.runs() == []
    assert await asyncio.to_thread(states, tmp_path / "data") == [("pending", True)] * 3


async def test_what_was_not_on_the_wire_at_the_stop_though_the_database_was_away_just_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[int] = []

    async def fail_twice(write: Write, work: Write, *args: Any) -> Any:
        if len(failed) < 2:
            failed.append(1)
            raise DatabaseUnusableError("test", "disk I/O error")
        return await write(work, *args)

    async with (
        live_admin(tmp_path / "data", address_limit=1, send_timeout_s=20.0) as live,
        live.executor(hang, reports=False) as executor,
    ):
        await executor.register()
        replace_write(live, monkeypatch, run_log.take_back, fail_twice)
        await write_due(live, await live.job(), 3)
        await until(lambda: len(executor.runs()) == 1 and live.admin.engine.launcher.sends_in_flight == 3)
        await live.admin.workers.stop()
    assert len(failed) == 2
    found = await asyncio.to_thread(states, tmp_path / "data")
    assert sorted(found) == [("pending", True), ("pending", True), ("sending", False)]


@pytest.mark.parametrize("is_committed", [True, False], ids=["committed", "not committed"])
async def test_what_goes_nowhere_when_nobody_learns_whether_it_was_taken_back(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    refused: list[int] = []
    unknown: list[int] = []

    async def refuse_once(write: Write, work: Write, *args: Any) -> Any:
        if not refused:
            refused.append(1)
            raise DatabaseUnusableError("test", "disk I/O error")
        return await write(work, *args)

    async def lose_the_answer_twice(write: Write, work: Write, *args: Any) -> Any:
        if len(unknown) < 2:
            unknown.append(1)
            if is_committed:
                await write(work, *args)
            raise UnknownCommitError("test")
        return await write(work, *args)

    async with live.executor() as alive:
        gone = await vanished(live)
        await alive.register()
        replace_write(live, monkeypatch, run_log.redirect, refuse_once)
        replace_write(live, monkeypatch, run_log.take_back, lose_the_answer_twice)
        job = await live.job(route_strategy="FIRST" if gone.address < alive.address else "LAST")
        run_ids = await write_due(live, job, 3)
        assert {run.outcome for run in await all_done(live, job)} == {Outcome.SUCCEEDED}
        assert sorted(run.log_id for run in alive.runs()) == run_ids
    assert (len(refused), len(unknown)) == (1, 2)


async def test_a_run_whose_end_is_being_written_has_no_other_turn(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an outage the recovery may be sooner than the writer; and the end that is written at last is of before."""
    late = LateWrite()
    async with live.executor(hang) as executor:
        await executor.register()
        job = await live.job()
        await executor.leave()
        replace_write(live, monkeypatch, run_log.apply, late)
        (run_id,) = await write_due(live, job, 1)
        await asyncio.wait_for(late.begun.wait(), 5)
        await live.change_run(run_id, sent_ms=live.admin.database.now_ms() - 60_000)
        await executor.register()
        await looked(live)
        feeding = live.admin.engine._feeding
        passes = feeding.passes
        await until(lambda: feeding.passes >= passes + 2)
        late.is_back.set()
        run = await live.done(run_id)
        assert (run.outcome, run.executor_address) == (Outcome.FAILED, "")
        assert executor.runs() == []


async def test_what_a_node_learnt_that_was_cut_off_does_not_end_what_its_heir_sends(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its failure waited for the database; the heir has sent the run meanwhile, and the executor has taken it."""
    late = LateWrite()
    gone = await vanished(live)
    with monkeypatch.context() as cut_off:
        replace_write(live, cut_off, run_log.apply, late)
        (run_id,) = await write_due(live, await live.job(), 1)
        await asyncio.wait_for(late.begun.wait(), 5)
        assert (await live.run(run_id)).executor_address == gone.address
        # As the heir leaves it, whose request is on its way just now.
        later_ms = live.admin.database.now_ms() + 60_000
        await live.change_run(run_id, phase=Phase.UNCONFIRMED, owner=None, unheard_ms=later_ms, check_ms=later_ms)
        late.is_back.set()
        await until(lambda: not live.admin.engine.writer.holds(run_id))
        assert (await live.run(run_id)).phase is Phase.UNCONFIRMED
    result = Settlement(run_id, live.admin.database.now_ms(), 200, Outcome.SUCCEEDED, "done")
    assert await live.admin.engine.writer.write_all([result]) == []
    assert (await live.done(run_id)).outcome is Outcome.SUCCEEDED


async def test_a_run_whose_answer_cannot_be_written_is_not_found_stuck_again_and_again(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while the disk is full, which may last: each pass would leave another write to wait in the memory."""
    refused, has_room = asyncio.Event(), asyncio.Event()

    async def refuse(write: Write, work: Write, *args: Any) -> Any:
        if has_room.is_set():
            return await write(work, *args)
        refused.set()
        raise DatabaseUnusableError("test", "database or disk is full")

    async with live.executor(reports=False) as executor:
        await executor.register()
        replace_write(live, monkeypatch, run_log.apply, refuse)
        (run_id,) = await write_due(live, await live.job(), 1)
        await asyncio.wait_for(refused.wait(), 5)
        await live.change_run(run_id, sent_ms=live.admin.database.now_ms() - 60_000)
        await looked(live)
        assert len(live.admin.engine.writer) == 0
        has_room.set()
        await live.run_when(run_id, lambda run: run.phase is Phase.ACCEPTED)
