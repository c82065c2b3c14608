"""What SQLite does unless it is told otherwise (each of these has lost or doubled runs somewhere)."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from jobwheel.admin.store import Connection, schema, sqlite_connections
from jobwheel.admin.store.database import is_outage, open_database
from jobwheel.admin.store.errors import DatabaseInUseError, DatabaseUnusableError, DatabaseUrlError
from jobwheel.admin.store.sqlite_database import SqliteDatabase
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.claims import Claims, events_of
from tests.support.sqlite_file import DURABLE
from tests.support.store import NOW_MS, Store, open_store


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as opened:
        yield opened


def path_of(store: Store) -> Path:
    assert isinstance(store.database, SqliteDatabase)
    return store.database.path


def pragma(name: str) -> Callable[[Connection], object]:
    return lambda connection: connection.exec_driver_sql(f"PRAGMA {name}").scalar()


async def test_a_commit_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connections, "_WRITER_PRAGMAS", DURABLE)
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as store:
        assert await store.database.write(pragma("journal_mode")) == "wal"
        assert await store.database.write(pragma("synchronous")) == 2


async def test_readers_cannot_write(store: Store) -> None:
    with pytest.raises(DatabaseUnusableError, match="readonly"):
        await store.database.read(lambda c: c.exec_driver_sql("DELETE FROM xxl_job_log"))


async def test_a_transaction_has_the_write_lock_from_its_beginning(store: Store) -> None:
    other = sqlite3.connect(path_of(store), isolation_level=None, timeout=0, check_same_thread=False)
    try:

        def try_to_write(connection: Connection) -> str:
            # Nothing was read or written yet.
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            return "locked"

        assert await store.database.write(try_to_write) == "locked"
    finally:
        other.close()


async def test_a_write_waits_for_another_process(store: Store) -> None:
    other = sqlite3.connect(path_of(store), isolation_level=None, check_same_thread=False)
    try:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.2, other.execute, ["COMMIT"]).start()
        await store.database.write(lambda c: c.exec_driver_sql("DELETE FROM xxl_job_log"))
    finally:
        other.close()


async def test_every_id_is_given_by_autoincrement(store: Store) -> None:
    def tables(connection: Connection) -> list[tuple[str, str]]:
        rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        return [(name, sql) for name, sql in rows if "\tid INTEGER" in sql or "id INTEGER NOT NULL" in sql]

    with_ids = [(name, sql) for name, sql in await store.database.read(tables) if "PRIMARY KEY (" not in sql]
    assert len(with_ids) >= 12
    assert [name for name, sql in with_ids if "AUTOINCREMENT" not in sql] == []


async def test_a_read_sees_one_moment(store: Store) -> None:
    begun, changed = threading.Event(), threading.Event()

    def count_twice(connection: Connection) -> tuple[int, int]:
        count = "SELECT count(*) FROM xxl_job_log"
        first = connection.exec_driver_sql(count).scalar_one()
        begun.set()
        assert changed.wait(5)
        return first, connection.exec_driver_sql(count).scalar_one()

    reading = asyncio.create_task(store.database.read(count_twice))
    await asyncio.to_thread(begun.wait, 5)
    await store.pending(await store.node())
    changed.set()
    assert await reading == (0, 0)
    assert (await store.database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM xxl_job_log").scalar())) == 1


async def _insert(store: Store, name: str, *, fail: bool = False) -> None:
    def work(connection: Connection) -> None:
        connection.exec_driver_sql("INSERT INTO xxl_job_lock (lock_name) VALUES (?)", (name,))
        if fail:
            raise LookupError(name)

    await store.database.write(work)


async def _names(store: Store) -> set[str]:
    return set(await store.database.read(lambda c: c.exec_driver_sql("SELECT * FROM xxl_job_lock").scalars().all()))


async def test_one_that_fails_in_a_shared_commit_is_undone_alone(store: Store) -> None:
    outcomes = await asyncio.gather(
        *(_insert(store, f"n{number}", fail=number % 3 == 0) for number in range(100)), return_exceptions=True
    )
    assert [isinstance(outcome, LookupError) for outcome in outcomes] == [number % 3 == 0 for number in range(100)]
    assert await _names(store) == {f"n{number}" for number in range(100) if number % 3}


async def test_nobody_in_a_shared_commit_is_told_done_if_it_is_broken_off(store: Store) -> None:
    def break_off(connection: Connection) -> None:
        # What SQLite does by itself when the disk is full or cannot be read.
        connection.exec_driver_sql("ROLLBACK")
        raise sqlite3.OperationalError("disk I/O error")

    begun, gate = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        begun.set()
        assert gate.wait(5)

    first = asyncio.create_task(store.database.write(hold))
    await asyncio.to_thread(begun.wait, 5)
    works = [_insert(store, "before"), store.database.write(break_off), _insert(store, "after")]
    waiting = asyncio.gather(*works, return_exceptions=True)
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which all three are put in
    gate.set()
    await first
    assert all(isinstance(outcome, Exception) for outcome in await waiting)
    assert await _names(store) == set()
    await _insert(store, "again")
    assert await _names(store) == {"again"}


async def test_whoever_writes_after_the_stop_is_told(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as store:
        gate = threading.Event()
        first = asyncio.create_task(store.database.write(lambda _: gate.wait(5)))
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the write is begun
        stopping = asyncio.create_task(store.database.stop())
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the stop is begun
        late = asyncio.create_task(_insert(store, "late"))
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the late write is begun
        gate.set()
        await stopping
        assert await first
        with pytest.raises(AssertionError, match="not started"):
            await late


@pytest.mark.parametrize(
    "error",
    [
        sqlite3.OperationalError("database or disk is full"),
        OperationalError("UPDATE", {}, sqlite3.OperationalError("attempt to write a readonly database")),
    ],
)
def test_a_trouble_of_the_database_is_no_rows_fault(error: Exception) -> None:
    assert is_outage(error)


@pytest.mark.parametrize("error", [OverflowError("int too large"), sqlite3.IntegrityError("NOT NULL"), ValueError()])
def test_a_bad_row_is_no_outage(error: Exception) -> None:
    assert not is_outage(error)


@pytest.mark.parametrize("folder", ["with space", "100%", "a%20b", "sharp#1", "datei ä", "q'uote"])
async def test_any_folder_name_will_do(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder
    async with open_store("sqlite", path, FakeClock(NOW_MS), fresh=True) as store:
        await store.pending(await store.node())
        assert await store.database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM xxl_job_log").scalar()) == 1
    assert {name.partition("-")[0] for name in os.listdir(path)} == {"jobwheel.db", "jobwheel.db.lock"}  # noqa: PTH208 - pathlib in a coroutine is refused too
    assert os.listdir(tmp_path) == [folder]  # noqa: PTH208 - as above


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "no database URL"),
        ("u:top-secret@h/d", "no database URL"),
        ("oracle://u:top-secret@h/d", "oracle is not supported; the kinds are sqlite, postgresql, mysql, mariadb"),
        ("postgresql+psycopg://u:top-secret@h/d", "names a driver"),
        ("postgresql://u:top-secret@h", "names no database"),
        ("postgresql://u:top-secret@h:port/d", "no database URL"),
        ("postgresql://u:top-secret@h/d?sslmode=maybe", "sslmode is one of disable, require, verify-full"),
        ("mysql://u:top-secret@h/d?charset=latin1", "charset is no parameter; there are sslmode, unix_socket"),
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("sqlite:////srv/what?/jobwheel.db", "question mark"),
    ],
)
def test_a_url_that_names_nothing_usable_is_refused(url: str, words: str) -> None:
    with pytest.raises(DatabaseUrlError, match=words) as caught:
        open_database(url, FakeClock())
    assert "top-secret" not in caught.value.message
    assert caught.value.field == "JOBWHEEL_DATABASE_URL"


async def test_a_second_admin_on_the_file_is_refused_and_a_tool_is_not(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path, FakeClock(NOW_MS)) as store:
        url = f"sqlite:///{path_of(store)}"
        with pytest.raises(DatabaseInUseError, match="another admin"):
            await open_database(url, FakeClock()).start()
        tool = open_database(url, FakeClock(), exclusive=False)
        await tool.start()
        await tool.write(lambda c: c.exec_driver_sql("DELETE FROM xxl_job_log"))
        await tool.stop()
    after = open_database(url, FakeClock())
    await after.start()
    await after.stop()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobwheel.db"
    path.write_bytes(b"this is no database, and long enough to be looked at as one" * 20)
    database = open_database(f"sqlite:///{path}", FakeClock(NOW_MS))
    with pytest.raises(DatabaseUnusableError, match="not a database"):
        await database.start()


# As a user who may not do everything: root may write any file, and a test may run as root.
_OPEN_READ_ONLY = """
import asyncio, os, tempfile
from pathlib import Path
import sqlalchemy.dialects.sqlite
from jobwheel.admin.store.database import open_database
from jobwheel.kernel.clock import SystemClock

async def open_twice(path):
    database = open_database(f"sqlite:///{path}", SystemClock())
    await database.start()
    await database.write(lambda c: c.exec_driver_sql("CREATE TABLE t (a)"))
    await database.stop()
    path.chmod(0o400)
    try:
        await open_database(f"sqlite:///{path}", SystemClock()).start()
    except Exception as error:
        print(type(error).__name__, error)

with tempfile.TemporaryDirectory() as folder:
    if os.geteuid() == 0:
        os.chown(folder, 65534, -1)
        os.seteuid(65534)
    asyncio.run(open_twice(Path(folder) / "jobwheel.db"))
    if os.getuid() == 0:
        os.seteuid(0)
"""


@pytest.mark.process
@pytest.mark.timeout(60)
def test_a_file_that_can_only_be_read_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _OPEN_READ_ONLY], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.startswith("DatabaseUnusableError"), done
    assert "readonly" in done.stdout


async def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobwheel.db").mkdir()
    database = open_database(f"sqlite:///{tmp_path / 'jobwheel.db'}", FakeClock(NOW_MS))
    with pytest.raises(DatabaseUnusableError, match=r"jobwheel\.db cannot be used"):
        await database.start()


async def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    database = open_database(f"sqlite:///{tmp_path / 'file' / 'jobwheel.db'}", FakeClock(NOW_MS))
    with pytest.raises(DatabaseUnusableError, match="cannot be used"):
        await database.start()


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    async with open_store("sqlite", tmp_path / "new", FakeClock(NOW_MS), fresh=True) as store:
        assert path_of(store).stat().st_mode & 0o077 == 0
        assert path_of(store).parent.stat().st_mode & 0o077 == 0


async def test_the_databases_clock_is_steady(tmp_path: Path) -> None:
    clock = FakeClock(NOW_MS)
    async with open_store("sqlite", tmp_path, clock) as store:
        assert store.database.now_ms() == NOW_MS
        clock.step(3600)
        assert store.database.now_ms() == NOW_MS
        await clock.advance(2)
        assert store.database.now_ms() == NOW_MS + 2000


async def test_a_schema_that_is_there_is_left_alone(store: Store) -> None:
    run = (await store.pending(await store.node()))[0]
    await store.database.write(schema.prepare, "test")
    assert await store.run_row(run.id)


async def test_a_stop_leaves_everything_in_the_one_file(store: Store) -> None:
    await store.group()
    path = Path(store.database.where)
    assert path.with_name(path.name + "-wal").stat().st_size > 0
    await store.database.stop()
    assert not path.with_name(path.name + "-wal").exists()
    copy = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    try:
        assert copy.execute("SELECT COUNT(*) FROM xxl_job_group").fetchone() == (1,)
    finally:
        copy.close()


async def test_a_stopped_database_starts_again(store: Store) -> None:
    await store.group()
    await store.database.stop()
    await store.database.start()
    assert await store.database.read(lambda c: c.exec_driver_sql("SELECT COUNT(*) FROM xxl_job_group").scalar()) == 1


async def test_of_writes_that_share_a_commit_one_that_fails_is_undone_alone(store: Store) -> None:
    began, go = threading.Event(), threading.Event()

    def hold(connection: Connection) -> None:
        began.set()
        assert go.wait(5)

    def insert(name: str, error: Exception | None = None) -> Callable[[Connection], None]:
        def work(connection: Connection) -> None:
            connection.exec_driver_sql("INSERT INTO xxl_job_lock (lock_name) VALUES (?)", (name,))
            if error is not None:
                raise error

        return work

    first = asyncio.create_task(store.database.write(hold))
    assert await asyncio.to_thread(began.wait, 5)
    # All three wait for the writer now, and so come into one commit.
    waiting = [
        asyncio.create_task(store.database.write(insert("one"))),
        asyncio.create_task(store.database.write(insert("two", ValueError("bad row")))),
        asyncio.create_task(store.database.write(insert("three"))),
    ]
    await asyncio.sleep(0)  # noqa: TID251 - lets the tasks put their work into the queue
    go.set()
    await first
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), ValueError, type(None)]

    def names(connection: Connection) -> list[str]:
        return list(connection.exec_driver_sql("SELECT lock_name FROM xxl_job_lock ORDER BY 1").scalars())

    assert await store.database.read(names) == ["one", "three"]


async def test_what_is_missed_while_the_lock_is_waited_for_is_a_misfire(store: Store) -> None:
    clock = store.clock
    assert isinstance(clock, FakeClock)
    job_id = await store.job()
    made = Claims(store)

    begun, release = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        begun.set()
        assert release.wait(5)

    holding = asyncio.create_task(store.database.write(hold))
    await asyncio.to_thread(begun.wait, 5)
    claiming = asyncio.create_task(made.planned())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the claim begins to wait
    clock.step(60)
    release.set()
    await holding
    planned = await claiming
    assert planned[0] >= (NOW_MS - 250) + 55_000
    assert "job.misfired" in await events_of(store, job_id)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE xxl_job_info SET anchor_ms = 'soon', schedule_type = 'FIX_RATE', schedule_conf = '60' WHERE id = ?",
        "UPDATE xxl_job_info SET time_zone = x'ff00' WHERE id = ?",
        "UPDATE xxl_job_info SET schedule_conf = x'ff00' WHERE id = ?",
    ],
)
async def test_a_column_of_another_type_stops_that_job_alone(store: Store, statement: str) -> None:
    bad, _ = await store.job(), await store.job()
    await store.database.write(lambda c: c.exec_driver_sql(statement, (bad,)))
    assert len(await Claims(store).planned()) == 6
    assert await events_of(store, bad) == ["job.corrupt"]


async def test_a_library_that_is_too_old_is_told_at_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "never-made"
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    database = open_database(f"sqlite:///{folder}/jobwheel.db", FakeClock(NOW_MS))
    with pytest.raises(DatabaseUnusableError, match=r"SQLite library is 3\.34\.1, and 3\.35\.0 is the oldest"):
        await database.start()
    assert not folder.exists()


async def test_a_full_disk_is_told_in_words(store: Store) -> None:
    pages = await store.database.read(lambda c: c.exec_driver_sql("PRAGMA page_count").scalar_one())
    await store.database.write(lambda c: c.exec_driver_sql(f"PRAGMA max_page_count = {pages}").all())
    with pytest.raises(DatabaseUnusableError, match="is full") as caught:
        await store.pending(await store.node(), *range(NOW_MS, NOW_MS + 3000))
    assert is_outage(caught.value)
