"""The run log's upkeep on many rows: `python -m benchmarks.upkeep --rows N --database KIND [--rate R --seconds S]`.

Fills a throw-away database, then prints JSON: how long the engine's scans and the first page of the run list take, how
long it takes to count the last ten minutes and the last day (`first_`: once, right after the fill, when an admin has
taken the statistics that it needs; the system has forgotten the files, a server keeps the 256 MB of its own), and how
fast a clean-up removes the oldest fifth of the rows (`--part 5`), a slice at a time with its pauses. With `--rate` an
admin runs meanwhile, with so many jobs of one second: how late their runs arrive for some seconds before the clean-up,
and while it goes on, and what CPU admin and database use in each second of both. A server is one of its own, durable.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.load import WARM_UP_S, Window, doubled, fill, lateness, now_ms, start_jobs, stop_jobs
from benchmarks.place import DATABASES, Admin, Executor, Place, running_admin, running_executor, throw_away_place
from benchmarks.processes import cpu_s, family_cpu_s
from benchmarks.report import is_wrong
from benchmarks.rows import forget_files, throw_away
from benchmarks.rows_fill import DAY_MS, SPAN_MS, fill_ended, settle_down
from benchmarks.rows_fill import fill as fill_rows
from benchmarks.rows_queries import PAGE, failed_not_handled
from jobwheel.admin.domain.clean_up import CleanUp, CleanUpWhich
from jobwheel.admin.domain.ids import CleanUpId, NodeId
from jobwheel.admin.services.clean_ups import CleanUpWork
from jobwheel.admin.services.planner_statistics import PlannerStatistics
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection, checks, clean_ups, run_counts, run_list
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.run_list import RunFilter
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock
from tests.support.store import NOW_MS, ZONE

_REPETITIONS: Final = 7
_MOST_S: Final = 3600.0

Scan = tuple[Any, ...]
"""A function of the store, with its arguments."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What is measured. `rate` 0: without an admin. Of the rows one in `part` is removed, the oldest ones."""

    database: str = "sqlite"
    rows: int = 200_000
    rate: int = 0
    seconds: float = 20.0
    warm_up_s: float = WARM_UP_S
    part: int = 5


def measure(wanted: Upkeep) -> Mapping[str, float]:
    """Run one measurement; everything it makes is gone when it returns."""
    if wanted.rate:
        return _beside_load(wanted)
    with throw_away(wanted.database) as (url, folder):
        return asyncio.run(_alone(url, folder, wanted.rows, wanted.part))


async def _alone(url: str, folder: Path, rows: int, part: int) -> Mapping[str, float]:
    database = open_database(url, SystemClock())
    await database.start()
    try:
        began_s = time.perf_counter()
        await fill_rows(database, rows)
        fill_s = round(time.perf_counter() - began_s, 1)
        first = await _first(database, folder)
        await settle_down(database, url)
        scans = {name: await _median_ms(database, *scan) for name, scan in _scans().items()}
        return {"rows": rows, "fill_s": fill_s, **first, **scans, **await _clean_up(database, part)}
    finally:
        await database.stop()


async def _first(database: Database, folder: Path) -> Mapping[str, float]:
    """Each scan once, when the rows are in and an admin has begun: nothing is read yet, nothing tidied up."""
    turn = Turn("planner_statistics", database, lambda: NodeId(1))
    began_s = time.perf_counter()
    await PlannerStatistics(database, SystemClock(), turn).run_once()
    found = {"statistics_s": round(time.perf_counter() - began_s, 2)}
    os.sync()
    for name, scan in _scans().items():
        forget_files(folder)
        found[f"first_{name}"] = await _once_ms(database, *scan)
    return found


def _scans() -> Mapping[str, Scan]:
    zone = InstallationZone(ZONE)
    now, lately, yesterday = (zone.to_wall(NOW_MS - ago_ms) for ago_ms in (0, 600_000, DAY_MS))
    return {
        "failure_scan_ms": (failed_not_handled,),
        "lost_scan_ms": (checks.due_checks, NOW_MS, 200),
        "first_page_ms": (run_list.list_runs, RunFilter(), None, PAGE),
        "count_ten_minutes_ms": (run_counts.count_in_time, lately, now),
        "count_a_day_ms": (run_counts.count_in_time, yesterday, now),
    }


async def _median_ms(database: Database, work: Callable[..., object], *args: object) -> float:
    return round(statistics.median([await _once_ms(database, work, *args) for _ in range(_REPETITIONS)]), 2)


async def _once_ms(database: Database, work: Callable[..., object], *args: object) -> float:
    def clocked(connection: Connection) -> float:
        began_s = time.perf_counter()
        work(connection, *args)
        return (time.perf_counter() - began_s) * 1000

    return round(await database.read(clocked), 2)


async def _clean_up(database: Database, part: int) -> Mapping[str, float]:
    asked = await database.write(_ask, part)
    began_s, began_cpu_s = time.perf_counter(), time.process_time()
    await CleanUpWork(database, SystemClock(), Turn("clean_ups", database, lambda: NodeId(1))).run_once()
    took_s, cpu_s = time.perf_counter() - began_s, time.process_time() - began_cpu_s
    done = await database.read(clean_ups.get_clean_up, asked)
    assert done is not None
    return {
        "cleaned_rows": done.deleted,
        "clean_up_rows_per_s": round(done.deleted / took_s),
        "clean_up_cpu_us_per_row": round(cpu_s / max(1, done.deleted) * 1e6, 1),
    }


def _ask(connection: Connection, part: int) -> CleanUpId:
    # The rows are spread evenly over the days.
    before = InstallationZone(ZONE).to_wall(NOW_MS - SPAN_MS + SPAN_MS // part)
    new = clean_ups.NewCleanUp(CleanUpWhich.OLDER_THAN_1_MONTH, None, None, before, "benchmark", now_ms())
    return clean_ups.insert_clean_up(connection, new).id


def _beside_load(wanted: Upkeep) -> Mapping[str, float]:
    with throw_away_place(wanted.database) as place:
        place.with_database(lambda database: fill_ended(database, wanted.rows))
        place.with_database(lambda database: settle_down(database, place.database_url))
        fill(place, wanted.rate)
        # Only what is asked for is removed.
        with running_admin(place, run_retention_days=0) as admin, running_executor(place, [admin]) as executor:
            return _measure_in(place, wanted, admin, executor)


def _measure_in(place: Place, wanted: Upkeep, admin: Admin, executor: Executor) -> Mapping[str, float]:
    filled = int(place.rows("SELECT MAX(id) FROM xxl_job_log")[0][0])
    start_jobs(place)
    time.sleep(wanted.warm_up_s)
    quiet_from_ms, cpu_before_s = now_ms(), _cpu_s(place, admin)
    time.sleep(wanted.seconds)
    asked_ms, cpu_asked_s = now_ms(), _cpu_s(place, admin)
    done = _ended(place, place.write(_ask, wanted.part))
    ended_ms, cpu_ended_s = done.ended_ms or 0, _cpu_s(place, admin)
    stop_jobs(place)
    executions = executor.executions()
    quiet = lateness(executions, Window(quiet_from_ms, asked_ms))
    busy = lateness(executions, Window(done.created_ms, ended_ms))
    executed = {each.run_id for each in executions}
    runs = place.rows("SELECT id FROM xxl_job_log WHERE id > :filled AND outcome <> 'failed'", filled=filled)
    return {
        "rows": wanted.rows,
        "cleaned_rows": done.deleted,
        "clean_up_s": round((ended_ms - done.created_ms) / 1000, 1),
        "quiet_p50_ms": quiet.p50_ms,
        "clean_up_p50_ms": busy.p50_ms,
        "quiet_p99_ms": quiet.p99_ms,
        "clean_up_p99_ms": busy.p99_ms,
        "quiet_cpu_ms_per_s": round((cpu_asked_s - cpu_before_s) / (asked_ms - quiet_from_ms) * 1e6, 1),
        "clean_up_cpu_ms_per_s": round((cpu_ended_s - cpu_asked_s) / (ended_ms - asked_ms) * 1e6, 1),
        "lost": sum(run_id not in executed for (run_id,) in runs),
        "doubled": doubled(executions),
    }


def _cpu_s(place: Place, admin: Admin) -> float:
    """What the admin's processes and the database's server have used so far."""
    return cpu_s(admin.pid) + (0.0 if place.server_pid is None else family_cpu_s(place.server_pid))


def _ended(place: Place, clean_up_id: CleanUpId) -> CleanUp:
    deadline_s = time.perf_counter() + _MOST_S
    while time.perf_counter() < deadline_s:
        found: CleanUp = place.write(clean_ups.get_clean_up, clean_up_id)
        if found.ended_ms is not None:
            return found
        time.sleep(0.5)
    raise TimeoutError(f"clean-up {clean_up_id} has not ended")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rate", type=int, default=0, help="runs a second of an admin beside it; 0 = no admin")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the admin runs before the clean-up")
    parser.add_argument("--part", type=int, default=5, help="one in so many rows is removed")
    options = parser.parse_args()
    figures = measure(Upkeep(options.database, options.rows, options.rate, options.seconds, part=options.part))
    print(json.dumps(figures))
    return int(is_wrong(figures))


if __name__ == "__main__":
    sys.exit(main())
