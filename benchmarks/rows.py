"""The planned queries on a long run log: `python -m benchmarks.rows --database KIND --rows N [--json]`.

Fills a throw-away database, then times each query through the store's own functions: the median and the worst of some
repetitions, and the first one, before which the system has forgotten the database's files (a server keeps the 256 MB of
its own). What a query changes is rolled back. A server (postgresql, mariadb) is one of its own, made for the
measurement. `--json` prints one line for each query. The status is 1 if one takes longer than it may.
"""

import argparse
import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.rows_fill import fill, settle_down
from benchmarks.rows_queries import Query, queries
from benchmarks.rows_size import Sizes, sizes
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import SystemClock
from tests.support.servers import EMPTY_DATABASE, SERVER_KINDS, running_server

BOUND_MS: Final = 50.0
_MOST_REPETITIONS: Final = 7
_MOST_S: Final = 1.0
_WORTH_FORGETTING: Final = 1 << 20
# Of hundreds of lists a few stand for the rest.
_MANY: Final = "list: "
_SHOWN: Final = (
    "list: none",
    "list: none, page 2",
    "list: none, deep",
    "list: today",
    "list: all, failed",
    "list: a job",
    "list: a group and 50 days",
    "list: the big job, failed and a day",
    "list: the big job and 50 days, deep",
)


@dataclass(frozen=True, slots=True)
class Figure:
    """How long a query took, in milliseconds, and how many rows it gave or changed, where it says so."""

    query: str
    median_ms: float
    worst_ms: float
    first_ms: float
    rows: int | None
    bounded: bool

    @property
    def is_slow(self) -> bool:
        return self.bounded and self.median_ms > BOUND_MS


@dataclass(frozen=True, slots=True)
class Measured:
    """What came out for one database."""

    database: str
    fill_s: float
    sizes: Sizes
    figures: Sequence[Figure]


class _RollBack(Exception):  # noqa: N818 - ends a transaction, no error
    pass


def measure(kind: str, rows: int, repetitions: int = _MOST_REPETITIONS, only: str = "") -> Measured:
    """Fill a database and ask it everything whose name has `only` in it; it is gone when this returns."""
    with throw_away(kind) as (url, folder):
        return asyncio.run(_measure(url, folder, rows, repetitions, only))


@contextmanager
def throw_away(kind: str) -> Iterator[tuple[str, Path]]:
    """The URL of an empty database, and the folder that its files are in."""
    if kind in SERVER_KINDS:
        with running_server(kind, durable=True) as server:
            yield server.url(EMPTY_DATABASE), server.process.folder
        return
    folder = Path(tempfile.mkdtemp(prefix="jobwheel-rows-"))
    try:
        yield f"sqlite:///{folder / 'jobwheel.db'}", folder
    finally:
        shutil.rmtree(folder)


def figures(kind: str, rows: int, repetitions: int = _MOST_REPETITIONS) -> Mapping[str, float]:
    """The same for the table of all measurements: each query's median in milliseconds, and what they come to."""
    measured = measure(kind, rows, repetitions)
    asked = measured.figures
    return {
        "rows": rows,
        "disk_mib": measured.sizes.disk_mib,
        "slow_queries": sum(each.is_slow for each in asked),
        "p50_ms": statistics.median(each.median_ms for each in asked),
        **{each.query: each.median_ms for each in asked if not each.query.startswith(_MANY) or each.query in _SHOWN},
    }


async def _measure(url: str, folder: Path, rows: int, repetitions: int, only: str) -> Measured:
    database = open_database(url, SystemClock())
    await database.start()
    try:
        began_s = time.perf_counter()
        await fill(database, rows)
        await settle_down(database, url)
        fill_s = time.perf_counter() - began_s
        os.sync()
        asked = [query for query in queries(rows) if only in query.name]
        figures = [await ask(database, folder, query, repetitions) for query in asked]
        return Measured(database.kind, round(fill_s, 1), await sizes(database, folder), figures)
    finally:
        await database.stop()


async def ask(database: Database, folder: Path, query: Query, repetitions: int) -> Figure:
    """Time one query, so often at most."""
    forget_files(folder)
    first_ms, answer = await _timed(database, query)
    times: list[float] = []
    began_s = time.perf_counter()
    while not times or (len(times) < repetitions and time.perf_counter() - began_s < _MOST_S):
        times.append((await _timed(database, query))[0])
    median_ms = round(statistics.median(times), 2)
    return Figure(query.name, median_ms, round(max(times), 2), round(first_ms, 2), _count(answer), query.bounded)


def forget_files(folder: Path) -> None:
    """Have the system forget what it holds of the larger files and has written: the next to read it reads the disk."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size > _WORTH_FORGETTING:
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


async def _timed(database: Database, query: Query) -> tuple[float, object]:
    """Milliseconds inside the transaction, and the answer."""
    if not query.changes:
        took_ms, answer = await database.read(_clocked, query.work, query.args)
        return took_ms / query.pages, answer
    seen: list[tuple[float, object]] = []

    def changing(connection: Connection) -> None:
        seen.append(_clocked(connection, query.work, query.args))
        raise _RollBack

    try:
        await database.write(changing)
    except _RollBack:
        return seen[-1]
    raise AssertionError("it is rolled back")


def _clocked(connection: Connection, work: Callable[..., object], args: Sequence[object]) -> tuple[float, object]:
    began_s = time.perf_counter()
    answer = work(connection, *args)
    return (time.perf_counter() - began_s) * 1000, answer


def _count(answer: object) -> int | None:
    if isinstance(answer, list | dict):
        return len(answer)
    return answer if isinstance(answer, int) else None


def _table(measured: Measured) -> str:
    lines = [f"{'query':<52}{'median ms':>11}{'worst':>9}{'first':>9}{'rows':>8}"]
    for each in measured.figures:
        rows = "" if each.rows is None else each.rows
        mark = " <-- slow" if each.is_slow else ""
        lines.append(f"{each.query:<52}{each.median_ms:>11g}{each.worst_ms:>9g}{each.first_ms:>9g}{rows:>8}{mark}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", choices=["sqlite", *SERVER_KINDS], default="sqlite")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only", default="", help="the queries whose names have this in them")
    parser.add_argument("--json", action="store_true", help="one JSON line for each query")
    options = parser.parse_args()
    measured = measure(options.database, options.rows, only=options.only)
    if options.json:
        for figure in measured.figures:
            print(json.dumps({"database": measured.database, **asdict(figure)}))
    else:
        print(_table(measured))
    about = {"database": measured.database, "fill_s": measured.fill_s, **asdict(measured.sizes)}
    print(json.dumps(about) if options.json else "\n".join(f"{name:<20} {value}" for name, value in about.items()))
    return 1 if any(each.is_slow for each in measured.figures) else 0


if __name__ == "__main__":
    sys.exit(main())
