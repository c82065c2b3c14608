"""The log of an SQLite database is copied into its file beside the transactions."""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from jobwheel.admin.store.sqlite_checkpoints import AFTER_CHANGES, Checkpoints
from jobwheel.admin.store.sqlite_connections import open_engine
from jobwheel.admin.store.sqlite_transactions import Transactions
from tests.support.eventually import eventually


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobwheel.db"


@pytest.fixture
def database(path: Path) -> Iterator[Transactions]:
    with closing(opened(path)) as database:
        yield database


def size_of(path: Path) -> int:
    return path.stat().st_size


def opened(path: Path) -> Transactions:
    """A database whose writer never copies its log."""
    database = Transactions(open_engine(path, log_pages=0))
    database.run(lambda connection: connection.exec_driver_sql("CREATE TABLE t (value TEXT)"))
    return database


def write(database: Transactions, rows: int) -> None:
    made = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO t SELECT 'x' FROM n"
    database.run(lambda connection: connection.exec_driver_sql(made, (rows,)))


async def test_a_log_that_has_grown_is_copied(database: Transactions, path: Path) -> None:
    with closing(Checkpoints(path)) as checkpoints:
        before = size_of(path)
        write(database, AFTER_CHANGES)
        assert size_of(path) == before
        checkpoints.note(database.changes)
        await eventually(lambda: size_of(path) > before)


async def test_a_small_log_is_left_alone_and_counted_on(database: Transactions, path: Path) -> None:
    checkpoints = Checkpoints(path)
    before = size_of(path)
    write(database, AFTER_CHANGES // 2)
    checkpoints.note(database.changes)
    checkpoints.close()
    assert size_of(path) == before
    with closing(Checkpoints(path)) as others:
        write(database, AFTER_CHANGES // 2)
        others.note(database.changes)
        await eventually(lambda: size_of(path) > before)


async def test_a_copy_that_could_not_be_made_is_made_the_next_time(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.mkdir(path)  # noqa: PTH102 - pathlib in a coroutine is refused too
    with caplog.at_level(logging.DEBUG), closing(Checkpoints(path)) as checkpoints:
        checkpoints.note(AFTER_CHANGES)
        await eventually(lambda: "database.checkpoint_failed" in caplog.text)
        os.rmdir(path)  # noqa: PTH106 - as above
        with closing(opened(path)) as database:
            write(database, AFTER_CHANGES)
            before = size_of(path)
            checkpoints.note(database.changes + AFTER_CHANGES)
            await eventually(lambda: size_of(path) > before)
