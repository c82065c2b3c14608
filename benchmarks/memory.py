"""The admin's memory over time: `python -m benchmarks.memory [--seconds N] [--rate N] [--database KIND] [--json]`.

Resident memory each minute (at least ten times) under a steady load: the first, the last, and how it grows in MiB an
hour, by all of them and by those of the second half, when caches are full and pools have their size.
"""

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.load import WARM_UP_S, fill, start_jobs, stop_jobs, tally
from benchmarks.place import Admin, running_admin, running_executor, throw_away_place
from benchmarks.processes import resident_mib
from benchmarks.report import Figures, run_alone

_FEWEST: Final = 10

Sample = tuple[float, float]
"""Hours since the first one, and MiB."""


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured; `rate` is in runs a second."""

    seconds: float = 3600.0
    rate: int = 500
    database: str = "sqlite"
    warm_up_s: float = WARM_UP_S


def measure(load: Load) -> Figures:
    """Run it; everything it starts has ended when this returns."""
    with throw_away_place(load.database) as place:
        fill(place, load.rate)
        with running_admin(place) as admin, running_executor(place, [admin]) as executor:
            start_jobs(place)
            time.sleep(load.warm_up_s)
            samples = _watch(admin, load.seconds)
            stop_jobs(place)
            executions = executor.executions()
            return {
                "first_mib": round(samples[0][1], 1),
                "last_mib": round(samples[-1][1], 1),
                "mib_per_hour": _slope(samples),
                "mib_per_hour_second_half": _slope(samples[len(samples) // 2 :]),
                "executions": len(executions),
                **tally(place, executions),
            }


def _watch(admin: Admin, seconds: float) -> list[Sample]:
    every_s = min(60.0, seconds / _FEWEST)
    began_s = time.perf_counter()
    samples = [(0.0, resident_mib(admin.pid))]
    while len(samples) * every_s <= seconds:
        time.sleep(max(0.0, began_s + len(samples) * every_s - time.perf_counter()))
        samples.append(((time.perf_counter() - began_s) / 3600, resident_mib(admin.pid)))
    return samples


def _slope(samples: Sequence[Sample]) -> float:
    hours, mib = zip(*samples, strict=True)
    return round(statistics.linear_regression(hours, mib).slope, 2)


def main() -> int:
    return run_alone(__doc__, Load(), measure, {"seconds": None, "rate": "runs a second", "database": None})


if __name__ == "__main__":
    sys.exit(main())
