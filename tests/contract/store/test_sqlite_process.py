"""The process that writes an SQLite database's batches, beside the thread that writes the rest."""

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import types
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import uvloop
from sqlalchemy import func, insert, select

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.report import RunCounts, Slice
from jobwheel.admin.services.paced_reads import PacedReads
from jobwheel.admin.services.settling import Settling
from jobwheel.admin.services.slices import SLICE, Slices
from jobwheel.admin.store import events, old_runs, reports, schema, sqlite_process
from jobwheel.admin.store.database import is_outage
from jobwheel.admin.store.errors import DatabaseInUseError, DatabaseUnusableError, UnknownCommitError
from jobwheel.admin.store.sqlite_database import SqliteDatabase
from jobwheel.admin.store.sqlite_process import SqliteProcess
from jobwheel.admin.store.tables import job_day, job_log
from jobwheel.kernel.clock import SystemClock
from tests.support.eventually import eventually
from tests.support.store import sqlite_url

# On a busy machine a process alone needs seconds to start.
pytestmark = [pytest.mark.process, pytest.mark.timeout(60)]

JOB = JobId(7)

_ADMIN = """
import asyncio, sys
from jobwheel.admin.store.events import insert_events
from jobwheel.admin.store.sqlite_database import SqliteDatabase
from jobwheel.kernel.clock import SystemClock

async def main():
    database = SqliteDatabase(sys.argv[1], SystemClock(), apart=True)
    await database.start()
    await database.write_batch(insert_events, [])
    print(database.writing_process, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(sqlite_url(tmp_path), SystemClock(), apart=True)
    await opened.start()
    await opened.write(schema.prepare, opened.where)
    yield opened
    await opened.stop()


def _event(number: int) -> NewEvent:
    return NewEvent(EventKind.JOB_STARTED, at_ms=number, job_id=JOB)


async def _stored(database: SqliteDatabase) -> list[int]:
    return sorted(each.at_ms for each in await database.read(events.list_job_events, JOB, None, 10_000))


def _pid(database: SqliteDatabase) -> int:
    assert database.writing_process is not None
    return database.writing_process


def _is_there(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    # A zombie has ended, and nobody has asked how yet.
    return "State:\tZ" not in status


async def test_a_batch_is_written_by_the_process_and_is_there_when_it_is_answered(database: SqliteDatabase) -> None:
    await database.write_batch(events.insert_events, [_event(1), _event(2)])
    assert await _stored(database) == [1, 2]
    assert _pid(database) != os.getpid()


async def test_both_write_at_once_and_neither_is_refused_or_lost(database: SqliteDatabase) -> None:
    batches = [database.write_batch(events.insert_events, [_event(number)]) for number in range(300)]
    others = [database.write(events.insert_events, [_event(number)]) for number in range(300, 600)]
    await asyncio.gather(*(each for pair in zip(batches, others, strict=True) for each in pair))
    assert await _stored(database) == list(range(600))


async def test_what_fails_is_undone_alone_and_says_what_was_wrong(database: SqliteDatabase) -> None:
    bad = NewEvent(EventKind.JOB_STARTED, at_ms=2, job_id=JOB, details={"set": {1, 2}})
    answers = await asyncio.gather(
        database.write_batch(events.insert_events, [_event(1)]),
        database.write_batch(events.insert_events, [_event(9), bad]),
        database.write_batch(events.insert_events, [_event(3)]),
        return_exceptions=True,
    )
    assert answers[0] is answers[2] is None
    assert isinstance(answers[1], TypeError)
    assert await _stored(database) == [1, 3]


async def test_what_cannot_be_found_there_fails_alone(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a function of a module that this process alone has."""
    module = types.ModuleType("known_here_alone")
    module.nothing = _nothing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(_nothing, "__module__", module.__name__)
    monkeypatch.setattr(_nothing, "__qualname__", "nothing")
    with pytest.raises(ModuleNotFoundError, match="known_here_alone"):
        await database.write_batch(_nothing)
    await database.write_batch(events.insert_events, [_event(1)])
    assert await _stored(database) == [1]


def _nothing(_: object) -> None:
    pass


async def test_a_process_that_dies_leaves_an_unknown_commit_and_has_an_heir(database: SqliteDatabase) -> None:
    await database.write_batch(events.insert_events, [_event(1)])
    first = _pid(database)
    os.kill(first, signal.SIGSTOP)
    waiting = asyncio.ensure_future(database.write_batch(events.insert_events, [_event(2)]))
    held_up = asyncio.ensure_future(database.write(events.insert_events, [_event(3)]))
    await database.clock.wait(0)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(UnknownCommitError):
        await waiting
    await held_up
    await database.write_batch(events.insert_events, [_event(4)])
    assert _pid(database) != first
    assert [number for number in await _stored(database) if number != 2] == [1, 3, 4]


async def test_a_process_that_hangs_is_killed_and_has_an_heir(
    database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waited for it, the stop of the admin as well, waited without end."""
    monkeypatch.setattr(sqlite_process, "_HANGS_AFTER_S", 0.2)
    await database.write_batch(events.insert_events, [_event(1)])
    first = _pid(database)
    os.kill(first, signal.SIGSTOP)
    waiting = asyncio.ensure_future(database.write_batch(events.insert_events, [_event(2)]))
    async with asyncio.timeout(20):
        await database.write(events.insert_events, [_event(3)])
        with pytest.raises(UnknownCommitError):
            await waiting
    await database.write_batch(events.insert_events, [_event(4)])
    assert _pid(database) != first
    assert [number for number in await _stored(database) if number != 2] == [1, 3, 4]


async def test_signals_that_mean_the_admin_do_not_end_it(database: SqliteDatabase) -> None:
    await database.write_batch(events.insert_events, [_event(1)])
    first = _pid(database)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(first, number)
    await database.write_batch(events.insert_events, [_event(2)])
    assert await _stored(database) == [1, 2]
    assert _pid(database) == first


async def test_it_ends_with_the_database(tmp_path: Path) -> None:
    database = SqliteDatabase(sqlite_url(tmp_path), SystemClock(), apart=True)
    await database.start()
    pid = _pid(database)
    await database.stop()
    assert not _is_there(pid)
    assert database.writing_process is None


async def test_a_stop_does_without_the_threads_that_a_name_server_may_have(tmp_path: Path) -> None:
    database = SqliteDatabase(sqlite_url(tmp_path), SystemClock(), apart=True)
    await database.start()
    answered = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        asking = asyncio.create_task(asyncio.to_thread(answered.wait))
        try:
            await asyncio.wait_for(database.stop(), 20)
        finally:
            answered.set()
        await asking


async def test_it_ends_with_an_admin_that_is_killed_and_the_file_is_free_again(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)
    admin = subprocess.Popen([sys.executable, "-c", _ADMIN, url], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220
    assert admin.stdout is not None
    with admin, admin.stdout:
        pid = int(admin.stdout.readline())
        with pytest.raises(DatabaseInUseError, match=f"process {admin.pid}"):
            await SqliteDatabase(url, SystemClock()).start()
        # Even if it cannot notice anything at that moment.
        os.kill(pid, signal.SIGSTOP)
        admin.kill()
        admin.wait()
    heir = SqliteDatabase(url, SystemClock(), apart=True)
    await heir.start()
    await heir.stop()
    await eventually(lambda: not _is_there(pid), 20)


async def test_a_file_that_cannot_be_opened_any_more_is_said(database: SqliteDatabase) -> None:
    await database.write_batch(events.insert_events, [_event(1)])
    database.path.rename(database.path.with_name("elsewhere.db"))
    database.path.mkdir()
    pid = _pid(database)
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not _is_there(pid), 20)
    with pytest.raises((DatabaseUnusableError, UnknownCommitError)):
        await database.write_batch(events.insert_events, [_event(2)])
    with pytest.raises(DatabaseUnusableError, match="unable to open"):
        await database.write_batch(events.insert_events, [_event(2)])


async def test_a_process_that_cannot_open_the_file_holds_up_nobody_else(tmp_path: Path) -> None:
    """As when a tool had the file for seconds just then: what else is written at a start was waited for without end."""
    process = SqliteProcess(tmp_path, None)
    await process.start()
    try:
        async with asyncio.timeout(20):
            await process.without(_nothing_else)
    finally:
        await process.stop()


async def _nothing_else() -> None:
    pass


async def test_a_stop_while_it_is_started_again_leaves_no_process_and_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = SlowStarts(monkeypatch)
    process = SqliteProcess(tmp_path / "jobwheel.db", None)
    waiting = asyncio.create_task(process.run(_nothing))
    pid = await starts.wait_for_one()
    stopping = asyncio.create_task(process.stop())
    await SystemClock().wait(0)
    starts.let_go.set()
    await asyncio.wait_for(stopping, 20)
    with pytest.raises((UnknownCommitError, DatabaseUnusableError)):
        await asyncio.wait_for(waiting, 5)
    assert not _is_there(pid)
    with pytest.raises(DatabaseUnusableError, match="stopped"):
        await asyncio.wait_for(process.run(_nothing), 20)
    assert process.pid is None


async def test_a_start_that_is_broken_off_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = SlowStarts(monkeypatch)
    database = SqliteDatabase(sqlite_url(tmp_path), SystemClock(), apart=True)
    starting = asyncio.create_task(database.start())
    pid = await starts.wait_for_one()
    starting.cancel()
    starts.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(starting, 20)
    assert not _is_there(pid)
    heir = SqliteDatabase(sqlite_url(tmp_path), SystemClock())
    await heir.start()
    await heir.stop()


class SlowStarts:
    """Processes are started, and whoever starts them is told only when it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._start = asyncio.create_subprocess_exec
        self._pids = asyncio.Queue[int]()
        self.let_go = asyncio.Event()
        monkeypatch.setattr(asyncio, "create_subprocess_exec", self._slowly)

    async def _slowly(self, *args: Any, **kwargs: Any) -> asyncio.subprocess.Process:
        process = await self._start(*args, **kwargs)
        self._pids.put_nowait(process.pid)
        await self.let_go.wait()
        return process

    async def wait_for_one(self) -> int:
        """The process that was started."""
        return await asyncio.wait_for(self._pids.get(), 20)


async def test_a_process_that_the_system_has_nothing_for_is_an_outage_and_started_later(
    database: SqliteDatabase,
) -> None:
    """Batches that are tried for as long as an outage lasts were given up after some tries."""
    await database.write_batch(events.insert_events, [_event(1)])
    pid = _pid(database)
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not _is_there(pid), 20)
    with _no_more_files():
        # It is learnt by the first one, or just before, that the process is gone.
        with pytest.raises((UnknownCommitError, DatabaseUnusableError)):
            await database.write_batch(events.insert_events, [_event(2)])
        errors = await asyncio.gather(
            *(database.write_batch(events.insert_events, [_event(3)]) for _ in range(2)), return_exceptions=True
        )
    assert [type(error) for error in errors] == [DatabaseUnusableError] * 2
    assert all(isinstance(error, Exception) and is_outage(error) for error in errors)
    assert str(errors[0]).endswith("the process that writes to it cannot be started: Too many open files")
    await database.write_batch(events.insert_events, [_event(4)])
    assert await _stored(database) == [1, 4]


def test_tries_without_room_for_a_process_leave_no_descriptors(tmp_path: Path) -> None:
    """On the loop that an admin has, which opens some of those that it needs before it misses one."""

    async def try_with_each_number_of_free_ones() -> None:
        process = SqliteProcess(tmp_path / "jobwheel.db", None)
        before = _open_files()
        for most in range(len(before), len(before) + 8):
            with _no_more_files(most), pytest.raises(DatabaseUnusableError, match="Too many open files"):
                await process.start()
        assert _open_files() == before

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(try_with_each_number_of_free_ones())


def _open_files() -> list[Path]:
    return sorted(Path("/proc/self/fd").iterdir())


@contextlib.contextmanager
def _no_more_files(most: int = 3) -> Iterator[None]:
    former = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, former[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, former)


def test_whoever_waits_while_the_process_dies_has_a_turn(tmp_path: Path) -> None:
    """On the loop that an admin has, on which nothing may be written to a connection that is gone."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_dies_while_another_writes(SqliteProcess(tmp_path / "jobwheel.db", None)))


async def _dies_while_another_writes(process: SqliteProcess) -> None:
    waiting = []

    async def write() -> None:
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        # Who comes only now waits for the next turn.
        waiting.append(asyncio.ensure_future(process.without(_nothing_else)))
        with pytest.raises(UnknownCommitError):
            await process.run(_nothing)

    await process.start()
    try:
        await process.without(write)
        async with asyncio.timeout(20):
            await waiting[0]
    finally:
        await process.stop()


async def test_old_runs_are_removed_by_the_process(database: SqliteDatabase) -> None:
    """The retention's slices hold up nobody by having the process wait."""
    rows = [{"job_group": 1, "job_id": JOB, "trigger_code": 200, "handle_code": 200}] * 5
    await database.write(lambda connection: connection.execute(insert(job_log), rows))
    slices = Slices(database)
    # A function of a module alone can be sent there; that it ran says where.
    assert await slices.change(3, old_runs.delete_done, [RunId(1), RunId(2), RunId(9)]) == 2
    assert slices.size != SLICE
    with pytest.raises((AttributeError, pickle.PicklingError)):
        await slices.change(1, lambda _: None)
    assert await database.read(lambda c: c.execute(select(func.count()).select_from(job_log)).scalar_one()) == 3


async def test_statistics_are_written_by_the_process(database: SqliteDatabase) -> None:
    ten = datetime(2026, 11, 27, 10, 0)  # noqa: DTZ001 - wall time of the installation
    row = {"job_group": 1, "job_id": JOB, "trigger_time": ten, "trigger_code": 200, "handle_code": 200}
    await database.write(lambda connection: connection.execute(insert(job_log).values(row)))
    counted = {ten: Slice(1, is_settled=True, counts={GroupId(1): RunCounts(succeeded=1)})}
    await database.write(reports.store_slices, counted)
    # The thread that writes the rest has nothing to do with it.
    written = database.write
    database.write = None  # type: ignore[method-assign, assignment]
    await Settling(database, PacedReads(database, database.clock)).settle(counted)
    database.write = written  # type: ignore[method-assign]
    assert (await database.read(reports.load_slices))[ten].is_settled
    assert await database.read(lambda c: c.execute(select(job_day.c.outcomes)).scalars().all()) == ['{"succeeded": 1}']
