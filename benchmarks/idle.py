"""An admin with nothing to do: `python -m benchmarks.idle [--jobs N] [--runs N] [--database KIND] [--json]`.

The jobs run and are due in hours; `--runs` puts a log of so many ended runs beside them. What the admin uses of the CPU
in all, its other loops included, is divided by its scheduling passes, of which there is one a second: first without a
job, then with all of them. Its resident memory is looked at then, and when some of the jobs are about to come due:
their runs are pending and wait in the wheel. For that this admin looks a minute ahead; nothing is executed. The claim
of a pass alone, in a process that does nothing else, is looked at as well: its CPU, without a server's.
"""

import statistics
import sys
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.load import fill_groups, fill_jobs, now_ms
from benchmarks.place import Admin, Place, running_admin, throw_away_place
from benchmarks.processes import cpu_s, resident_mib
from benchmarks.report import Figures, run_alone
from benchmarks.rows_fill import fill_ended
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.engine.claim import ClaimLimits, claim
from jobwheel.admin.store import Connection
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import SystemClock

_PASSES: Final = "jobwheel_scheduling_passes_total"
_DUE_IN_MS: Final = 6 * 3_600_000
_LOOK_AHEAD_S: Final = 60
_SOON_MS: Final = 50_000
_SETTLE_S: Final = 3.0
_CLAIMS: Final = 30


@dataclass(frozen=True, slots=True)
class Idle:
    """What is measured: for so many seconds each time, with so many jobs, pending runs, and runs that have ended."""

    seconds: float = 30.0
    jobs: int = 100_000
    pending: int = 10_000
    runs: int = 0
    database: str = "sqlite"


def measure(idle: Idle) -> Figures:
    """Run it; everything it starts has ended when this returns."""
    with throw_away_place(idle.database) as place:
        fill_groups(place)
        if idle.runs:
            place.with_database(lambda database: fill_ended(database, idle.runs))
        with running_admin(place, look_ahead_s=_LOOK_AHEAD_S) as admin:
            return _measure_in(place, idle, admin)


def _measure_in(place: Place, idle: Idle, admin: Admin) -> Figures:
    without_jobs_ms = _cpu_ms_per_pass(admin, idle.seconds)
    without_jobs_mib = resident_mib(admin.pid)
    _add_running_jobs(place, idle.jobs)
    with_jobs_ms = _cpu_ms_per_pass(admin, idle.seconds)
    with_jobs_mib = resident_mib(admin.pid)
    claim_ms = _claim_cpu_ms(place)
    _make_pending(place, admin, idle.pending)
    return {
        "cpu_ms_per_pass_without_jobs": without_jobs_ms,
        "cpu_ms_per_pass": with_jobs_ms,
        "claim_cpu_ms": claim_ms,
        "rss_without_jobs_mib": round(without_jobs_mib, 1),
        "rss_mib": round(with_jobs_mib, 1),
        "rss_with_pending_mib": round(resident_mib(admin.pid), 1),
    }


def _cpu_ms_per_pass(admin: Admin, seconds: float) -> float:
    # What came before, such as the first connection of a client, is over by then.
    time.sleep(_SETTLE_S)
    passes, cpu = admin.metric(_PASSES), cpu_s(admin.pid)
    time.sleep(seconds)
    used_s = cpu_s(admin.pid) - cpu
    return round(used_s / max(1.0, admin.metric(_PASSES) - passes) * 1000, 2)


def _claim_cpu_ms(place: Place) -> float:
    """The median of some claims that find nothing."""
    zone, clock, limits = InstallationZone("UTC"), SystemClock(), ClaimLimits()

    def look(connection: Connection) -> float:
        began_s = time.thread_time()
        claimed = claim(connection, zone, clock, NodeId(0), limits, limits.most_runs)
        if claimed.runs:
            raise RuntimeError(f"{len(claimed.runs)} runs came due, and nothing should")
        return time.thread_time() - began_s

    took_s: list[float] = [place.write(look) for _ in range(_CLAIMS)]
    return round(statistics.median(took_s) * 1000, 2)


def _add_running_jobs(place: Place, jobs: int) -> None:
    first_ms = now_ms() + _DUE_IN_MS
    # They are due one after the other.
    times = (first_ms + n * _DUE_IN_MS // jobs for n in range(jobs))
    columns = {"schedule_conf": "86400", "trigger_status": 1}
    fill_jobs(place, ({**columns, "anchor_ms": at_ms, "trigger_next_time": at_ms} for at_ms in times))


def _make_pending(place: Place, admin: Admin, pending: int) -> None:
    """Return when the wheel holds a run of each of so many jobs.

    Raises:
        TimeoutError: they are due, and it does not.
    """
    due_ms = now_ms() + _SOON_MS
    place.execute("UPDATE xxl_job_info SET trigger_next_time = :due_ms WHERE id <= :most", due_ms=due_ms, most=pending)
    while admin.metric("jobwheel_wheel_runs") < pending:
        if now_ms() > due_ms:
            raise TimeoutError(f"the wheel does not hold {pending} runs")
        time.sleep(0.2)


def main() -> int:
    return run_alone(
        __doc__,
        Idle(),
        measure,
        {
            "seconds": "how long the CPU is looked at, each time",
            "jobs": None,
            "pending": "runs that wait, one of a job",
            "runs": "runs in the log that have ended",
            "database": None,
        },
    )


if __name__ == "__main__":
    sys.exit(main())
