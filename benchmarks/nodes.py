"""Two admins on one PostgreSQL against one: `python -m benchmarks.nodes [--seconds N] [--rate N] [--batched] [--json]`.

The same load, more than one admin can do, first for one and then for two; the executor registers at both and reports to
them in turn. Figures are results stored a second, in all, the runs that each admin sent, and the CPU that each process
used, in cores: the admins, the executor, the database's server with all its processes. They share the machine, so what
two admins gain is bounded by what the others leave of it.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

from benchmarks.load import WARM_UP_S, fill, results, start_jobs, stop_jobs, tally
from benchmarks.place import Admin, Executor, Place, running_admin, running_executor, throw_away_place
from benchmarks.processes import cpu_s, family_cpu_s
from benchmarks.report import Figures, run_alone

_SENT: Final = "jobwheel_runs_sent_total"
_NODES: Final = {"one": 1, "two": 2}


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured; `rate` is in runs a second, for all nodes together."""

    seconds: float = 30.0
    rate: int = 4500
    batched: bool = False
    warm_up_s: float = WARM_UP_S


def measure(load: Load) -> Figures:
    """Run both; everything they start has ended when this returns."""
    figures: dict[str, float] = {"lost": 0, "doubled": 0}
    for name, nodes in _NODES.items():
        for figure, value in _measure_with(nodes, load).items():
            if figure in figures:
                figures[figure] += value
            else:
                figures[f"{name}_{figure}"] = value
    return figures


def _measure_with(nodes: int, load: Load) -> Figures:
    with ExitStack() as stack:
        place = stack.enter_context(throw_away_place("postgresql"))
        fill(place, load.rate)
        admins = [stack.enter_context(running_admin(place)) for _ in range(nodes)]
        executor = stack.enter_context(running_executor(place, admins, batched=load.batched))
        start_jobs(place)
        time.sleep(load.warm_up_s)
        rates = _rates(place, admins, executor, load.seconds)
        stop_jobs(place)
        executions = executor.executions()
        return {**rates, **tally(place, executions)}


def _rates(place: Place, admins: Sequence[Admin], executor: Executor, seconds: float) -> Figures:
    """How fast each count went up in this time."""
    before, began_s = _counts(place, admins, executor), time.perf_counter()
    time.sleep(seconds)
    after, took_s = _counts(place, admins, executor), time.perf_counter() - began_s
    return {name: round((count - before[name]) / took_s, 2) for name, count in after.items()}


def _counts(place: Place, admins: Sequence[Admin], executor: Executor) -> Mapping[str, float]:
    assert place.server_pid is not None, "PostgreSQL is a process"
    counts = {"runs_per_s": float(results(place))}
    for number, admin in enumerate(admins, 1):
        counts[f"admin_{number}_sent_per_s"] = admin.metric(_SENT)
        counts[f"admin_{number}_cores"] = cpu_s(admin.pid)
    counts["executor_cores"] = cpu_s(executor.pid)
    counts["database_cores"] = family_cpu_s(place.server_pid)
    return counts


def main() -> int:
    return run_alone(
        __doc__,
        Load(),
        measure,
        {
            "seconds": "for each of both",
            "rate": "runs a second that are wanted",
            "batched": "the executor takes many runs in one request",
        },
    )


if __name__ == "__main__":
    sys.exit(main())
