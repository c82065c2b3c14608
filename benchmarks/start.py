"""Upgrading and starting on a long run log: `python -m benchmarks.start --database KIND --rows N [--json]`.

Fills a throw-away database whose newest thousandth of runs is open, takes its schema back to the first version and
brings it up to date, while runs are written one after the other: how long that takes, and the longest that one of them
waits (0 on SQLite, where no admin may run meanwhile). Then an admin starts: until it has looked for accepted runs that
nobody looks at, until it listens, and until it has planned for the first time. A server is one of its own, durable.
"""

import asyncio
import sys
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.place import Admin, Place, running_admin, throw_away_place
from benchmarks.processes import wait_until
from benchmarks.report import Figures, run_alone
from benchmarks.rows_fill import fill_log, settle_down
from jobwheel.admin.store import Connection, nodes, runs, schema
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.zone import InstallationZone
from tests.support.store import NOW_MS, ZONE, new_run

_FIRST_VERSION: Final = "0001"
_PASSES: Final = "jobwheel_scheduling_passes_total"
_BETWEEN_WRITES_S: Final = 0.02


@dataclass(frozen=True, slots=True)
class Start:
    """What is measured."""

    database: str = "sqlite"
    rows: int = 5_000_000


def measure(start: Start) -> Figures:
    """Run it; everything it makes is gone when this returns."""
    with throw_away_place(start.database) as place:
        place.with_database(lambda database: fill_log(database, start.rows, start.rows))
        place.with_database(lambda database: settle_down(database, place.database_url))
        return {"rows": start.rows, **_upgrade(place), **_look_at_accepted(place), **_start(place)}


def _upgrade(place: Place) -> Figures:
    place.with_database(lambda database: database.write_patiently(schema.downgrade, _FIRST_VERSION))

    async def upgrade(database: Database) -> Figures:
        over = asyncio.Event()
        writing = place.server_pid and asyncio.create_task(_longest_write_s(database, over))
        began_s = time.perf_counter()
        await database.write_patiently(schema.upgrade, database.where)
        took_s = time.perf_counter() - began_s
        over.set()
        longest_s = await writing if writing else 0.0
        return {"upgrade_s": round(took_s, 1), "write_held_up_s": round(longest_s, 2)}

    found: Figures = place.with_database(upgrade)
    return found


async def _longest_write_s(database: Database, over: asyncio.Event) -> float:
    longest_s = 0.0
    while not over.is_set():
        began_s = time.perf_counter()
        await database.write_patiently(runs.insert_runs, InstallationZone(ZONE), [new_run(None, NOW_MS)])
        longest_s = max(longest_s, time.perf_counter() - began_s)
        await asyncio.sleep(_BETWEEN_WRITES_S)
    return longest_s


def _look_at_accepted(place: Place) -> Figures:
    """As each start does, first with what an earlier version left, then with nothing."""

    def look(connection: Connection) -> float:
        began_s = time.perf_counter()
        nodes.look_at_all_accepted(connection, NOW_MS)
        return round((time.perf_counter() - began_s) * 1000, 2)

    return {"look_at_accepted_first_ms": place.write(look), "look_at_accepted_ms": place.write(look)}


def _start(place: Place) -> Figures:
    began_s = time.perf_counter()
    with running_admin(place, run_retention_days=0) as admin:
        listens_s = time.perf_counter() - began_s
        _wait_for_a_pass(admin)
        planned_s = time.perf_counter() - began_s
    return {"listens_s": round(listens_s, 2), "planned_s": round(planned_s, 2)}


def _wait_for_a_pass(admin: Admin) -> None:
    wait_until(lambda: admin.metric(_PASSES) >= 1, "the admin has planned", every_s=0.02)


def main() -> int:
    return run_alone(__doc__, Start(), measure, {"database": None, "rows": "how many runs are in the log"})


if __name__ == "__main__":
    sys.exit(main())
