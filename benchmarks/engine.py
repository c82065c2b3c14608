"""The engine end to end: `python -m benchmarks.engine --database KIND --seconds N [--jobs N] [--rate N] [--json]`.

An admin process, its database and one executor process on this machine; FIX_RATE jobs whose anchors are spread evenly
over their interval, which is one second unless `--jobs` is a multiple of `--rate`: 6000 jobs at 100 runs a second have
a minute each. More than the engine can do shows what it can; with `--batched` the recording executor takes many runs in
one request. Results are counted when they are stored. Lateness is from the due time to the arrival at the executor, so
it includes the way there; "written" is the admin's own count, to the moment its request is written, by buckets. A
server (postgresql, mariadb) is one of its own, made for the measurement, and durable. Lost: planned instants or rows
without an execution; doubled: run twice.
"""

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from benchmarks.load import (
    WARM_UP_S,
    Window,
    fill,
    lateness,
    now_ms,
    results,
    start_jobs,
    stop_jobs,
    tally,
)
from benchmarks.place import (
    DATABASES,
    EXECUTORS,
    Admin,
    Executor,
    Place,
    running_admin,
    running_executor,
    throw_away_place,
)
from benchmarks.processes import cpu_s, resident_mib
from benchmarks.report import report
from benchmarks.written import Buckets, percentile_ms, read_buckets


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured."""

    database: str
    jobs: int
    seconds: float
    executor: str
    batched: bool = False
    warm_up_s: float = WARM_UP_S
    each_s: int = 1


@dataclass(frozen=True, slots=True)
class Figures:
    """What came out. CPU is in microseconds per result stored, the admin's if nothing else is said."""

    runs_per_s: float
    cpu_us_per_run: float
    executor_cpu_us_per_run: float
    lateness_p50_ms: float
    lateness_p99_ms: float
    written_p99_within_ms: float
    rss_mib: float
    missed: int
    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """The moment, results stored so far, CPU seconds used, what the admin holds in memory, how late it has written."""

    at_ms: int
    results: int
    cpu_s: float
    executor_cpu_s: float
    rss_mib: float
    written: Buckets


def measure(load: Load) -> Figures:
    """Run one measurement; everything it starts has ended when it returns."""
    with throw_away_place(load.database) as place:
        fill(place, load.jobs, each_s=load.each_s)
        with (
            running_admin(place) as admin,
            running_executor(place, [admin], kind=load.executor, batched=load.batched) as executor,
        ):
            return _measure_in(place, load, admin, executor)


def figures(load: Load) -> Mapping[str, float]:
    """The same for the table of all measurements."""
    return asdict(measure(load))


def _measure_in(place: Place, load: Load, admin: Admin, executor: Executor) -> Figures:
    start_jobs(place)
    time.sleep(load.warm_up_s)
    before = _sample(place, admin, executor)
    time.sleep(load.seconds)
    after = _sample(place, admin, executor)
    stop_jobs(place)
    executions = executor.executions()
    stored = after.results - before.results
    late = lateness(executions, Window(before.at_ms, after.at_ms))
    return Figures(
        runs_per_s=round(stored / (after.at_ms - before.at_ms) * 1000, 1),
        cpu_us_per_run=round((after.cpu_s - before.cpu_s) / max(1, stored) * 1e6, 1),
        executor_cpu_us_per_run=round((after.executor_cpu_s - before.executor_cpu_s) / max(1, stored) * 1e6, 1),
        lateness_p50_ms=late.p50_ms,
        lateness_p99_ms=late.p99_ms,
        written_p99_within_ms=percentile_ms(before.written, after.written, 0.99),
        rss_mib=round(after.rss_mib, 1),
        **tally(place, executions),
    )


def _sample(place: Place, admin: Admin, executor: Executor) -> _Sample:
    written = read_buckets(admin.url, admin.metrics_token)
    stored = results(place)
    return _Sample(now_ms(), stored, cpu_s(admin.pid), cpu_s(executor.pid), resident_mib(admin.pid), written)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--database", choices=DATABASES, default="sqlite")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--jobs", type=int, help="how many jobs; without --rate each runs each second")
    parser.add_argument("--rate", type=int, help="runs a second that are wanted; without --jobs as many jobs")
    parser.add_argument("--executor", choices=EXECUTORS, default="recording")
    parser.add_argument("--batched", action="store_true", help="the recording executor takes many runs in one request")
    parser.add_argument("--json", action="store_true", help="one JSON line")
    options = parser.parse_args()
    if options.batched and options.executor != "recording":
        parser.error("--batched is for the recording executor; one on the SDK always takes batches")
    jobs = options.jobs or options.rate or 100
    each_s, rest = divmod(jobs, options.rate or jobs)
    if jobs < 1 or each_s < 1 or rest:
        parser.error("each job runs each few whole seconds: --jobs is a multiple of --rate, and both are above zero")
    load = Load(options.database, jobs, options.seconds, options.executor, options.batched, each_s=each_s)
    return report(figures(load), as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
