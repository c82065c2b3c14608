"""Jobs that come due at one instant: `python -m benchmarks.burst [--jobs N] [--database KIND] [--batched] [--json]`.

One admin and one recording executor, with the defaults. The jobs run well before their instant, so they are planned as
they usually are, when it is less than the look-ahead away. Figures are milliseconds after the instant: the arrival of
the first, the middle and the last run at the executor, the bound within which the admin wrote its last request, and the
last end by the run log. Lost: a job that was not executed; doubled: executed once more.
"""

import sys
import time
from dataclasses import dataclass
from typing import Final

from benchmarks.load import doubled, fill_groups, fill_jobs, now_ms
from benchmarks.place import Admin, Executor, Place, running_admin, running_executor, throw_away_place
from benchmarks.report import Figures, run_alone
from benchmarks.written import percentile_ms, read_buckets

_NOTICE_S: Final = 8
"""How long before their instant the jobs are started: longer than the look-ahead."""

_WAIT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Burst:
    """What is measured."""

    jobs: int = 10_000
    database: str = "sqlite"
    batched: bool = False


def measure(burst: Burst) -> Figures:
    """Run it; everything it starts has ended when this returns."""
    with throw_away_place(burst.database) as place:
        fill_groups(place)
        fill_jobs(place, ({"schedule_conf": "86400"} for _ in range(burst.jobs)))
        with running_admin(place) as admin, running_executor(place, [admin], batched=burst.batched) as executor:
            return _measure_in(place, burst, admin, executor)


def _measure_in(place: Place, burst: Burst, admin: Admin, executor: Executor) -> Figures:
    instant_ms = (now_ms() // 1000 + _NOTICE_S) * 1000
    place.execute("UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = :at, anchor_ms = :at", at=instant_ms)
    _wait_for_ends(place, burst.jobs, instant_ms + _WAIT_S * 1000)
    written = read_buckets(admin.url, admin.metrics_token)
    ((ended_ms,),) = place.rows("SELECT MAX(ended_ms) FROM xxl_job_log")
    executions = executor.executions()
    after_ms = sorted(execution.arrived_ms - instant_ms for execution in executions) or [-1]
    return {
        "first_ms": after_ms[0],
        "p50_ms": after_ms[len(after_ms) // 2],
        "last_ms": after_ms[-1],
        "last_written_within_ms": percentile_ms({}, written, 1.0),
        "last_end_ms": (ended_ms or instant_ms) - instant_ms,
        "lost": burst.jobs - len({execution.run_id for execution in executions}),
        "doubled": doubled(executions),
    }


def _wait_for_ends(place: Place, jobs: int, until_ms: int) -> None:
    """Return when so many runs have ended, or at a time when those that have not count as lost."""
    while now_ms() < until_ms and place.count("xxl_job_log WHERE ended_ms IS NOT NULL") < jobs:
        time.sleep(0.5)


def main() -> int:
    return run_alone(
        __doc__,
        Burst(),
        measure,
        {"jobs": None, "database": None, "batched": "the executor takes many runs in one request"},
    )


if __name__ == "__main__":
    sys.exit(main())
