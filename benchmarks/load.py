"""The usual load: jobs of some seconds whose instants are spread evenly, and what became of their runs."""

import itertools
import json
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import insert

from benchmarks.place import APP_NAME, Execution, Place
from jobwheel.admin.store import Connection
from jobwheel.admin.store.tables import job_group, job_info

WARM_UP_S: Final = 5.0
_FIRST_IN_MS: Final = 1000
_SETTLE_S: Final = 300.0
_AT_ONCE: Final = 10_000

_JOB: Final[Mapping[str, object]] = {
    "job_group": 1,
    "schedule_type": "FIX_RATE",
    "schedule_conf": "1",
    "executor_route_strategy": "FIRST",
    "executor_handler": "bench",
    "executor_param": "day=2026-11-27",
    "executor_block_strategy": "SERIAL_EXECUTION",
    "glue_type": "BEAN",
}


@dataclass(frozen=True, slots=True)
class Window:
    """What is measured: runs that were planned in this time, epoch milliseconds."""

    began_ms: int
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Lateness:
    """From the due time to the arrival at the executor; -1 if nothing arrived."""

    p50_ms: int
    p99_ms: int


def fill(place: Place, jobs: int, app_names: Sequence[str] = (APP_NAME,), *, each_s: int = 1) -> None:
    """Make a group for each app name, and in each as many jobs, which are stopped and would run each `each_s`."""
    fill_groups(place, app_names)
    groups = len(app_names)
    # Until they start, the anchor is how far into their interval they are due.
    fill_jobs(
        place,
        (
            {"job_group": 1 + n % groups, "schedule_conf": str(each_s), "anchor_ms": 1000 * each_s * n // jobs}
            for n in range(jobs)
        ),
    )


def fill_groups(place: Place, app_names: Sequence[str] = (APP_NAME,)) -> None:
    groups = [{"id": n, "app_name": name, "title": name} for n, name in enumerate(app_names, 1)]
    place.write(lambda connection: connection.execute(insert(job_group), groups))


def fill_jobs(place: Place, jobs: Iterable[Mapping[str, object]]) -> None:
    """Make jobs that are as usual but for these columns; all of them name the same columns."""
    rows = [{**_JOB, "job_desc": f"job {n}", **columns} for n, columns in enumerate(jobs)]
    # A transaction of 100,000 rows would take longer than a server may.
    for first in range(0, len(rows), _AT_ONCE):
        place.write(_insert_jobs, rows[first : first + _AT_ONCE])


def _insert_jobs(connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
    connection.execute(insert(job_info), rows)


def start_jobs(place: Place) -> None:
    """Let all jobs begin."""
    # The next time is set before the anchor: MySQL computes from left to right.
    place.execute(
        "UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = anchor_ms + :first_ms, "
        "anchor_ms = anchor_ms + :first_ms",
        first_ms=now_ms() + _FIRST_IN_MS,
    )


def stop_jobs(place: Place) -> None:
    """Let all jobs end; return when no run is open any more.

    Raises:
        TimeoutError: some are, after minutes.
    """
    place.execute("UPDATE xxl_job_info SET trigger_status = 0")
    deadline_s = time.perf_counter() + _SETTLE_S
    while left := place.count("xxl_job_log WHERE phase IS NOT NULL"):
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"{left} runs are open still")
        time.sleep(0.2)


def results(place: Place) -> int:
    """How many successes are stored."""
    return place.count("xxl_job_log WHERE handle_code = 200")


def lateness(executions: Iterable[Execution], window: Window) -> Lateness:
    late = sorted(
        execution.arrived_ms - execution.planned_ms
        for execution in executions
        if window.began_ms <= execution.planned_ms < window.ended_ms
    )
    return Lateness(late[len(late) // 2], late[len(late) * 99 // 100]) if late else Lateness(-1, -1)


def tally(place: Place, executions: Sequence[Execution]) -> dict[str, int]:
    """What became of all that was planned.

    missed: misfires, which the jobs leave out, since the admin was behind by more than a claim makes up.
    lost: planned instants without a row that are no misfires, and rows not executed that do not say they failed.
    doubled: how often a run was executed once more.
    """
    intervals = _intervals(place)
    misfires = _misfires(place, intervals)
    return {
        "missed": sum(len(window) for windows in misfires.values() for window in windows),
        "lost": _lost(place, executions, misfires, intervals),
        "doubled": doubled(executions),
    }


def _intervals(place: Place) -> dict[int, int]:
    """Milliseconds from one instant of each job to its next."""
    return {job_id: 1000 * int(seconds) for job_id, seconds in place.rows("SELECT id, schedule_conf FROM xxl_job_info")}


def _lost(
    place: Place,
    executions: Iterable[Execution],
    misfires: Mapping[int, Sequence[range]],
    intervals: Mapping[int, int],
) -> int:
    executed = {execution.run_id for execution in executions}
    rows = place.rows("SELECT id, job_id, planned_ms, outcome FROM xxl_job_log")
    unexecuted = sum(1 for run_id, _, _, outcome in rows if run_id not in executed and outcome != "failed")
    instants: dict[int, set[int]] = {}
    for _, job_id, planned_ms, _ in rows:
        instants.setdefault(job_id, set()).add(planned_ms)
    return unexecuted + sum(
        _gaps(times, misfires.get(job_id, []), intervals[job_id]) for job_id, times in instants.items()
    )


def _misfires(place: Place, intervals: Mapping[int, int]) -> dict[int, list[range]]:
    """The instants of each job that were misfires, as its events tell."""
    found: dict[int, list[range]] = {}
    for job_id, text in place.rows("SELECT job_id, details FROM jobwheel_event WHERE kind = 'job.misfired'"):
        details = json.loads(text)
        first_ms, last_ms = (
            round(datetime.fromisoformat(details[end]).timestamp() * 1000) for end in ("from", "until")
        )
        found.setdefault(job_id, []).append(range(first_ms, last_ms + 1, intervals[job_id]))
    return found


def _gaps(times: Collection[int], misfires: Iterable[range], each_ms: int) -> int:
    known = {*times, *itertools.chain.from_iterable(misfires)}
    return sum(1 for time_ms in range(min(times), max(times), each_ms) if time_ms not in known)


def doubled(executions: Iterable[Execution]) -> int:
    """How often a run was executed once more."""
    return sum(count - 1 for count in Counter(execution.run_id for execution in executions).values())


def now_ms() -> int:
    return time.time_ns() // 1_000_000
