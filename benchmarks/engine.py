"""The engine end to end: `python -m benchmarks.engine --database KIND --seconds N [--jobs N | --rate N] [--json]`.

An admin process, its database and one executor process on this machine; FIX_RATE jobs of one second whose anchors are
spread over the second. With `--rate` as many jobs as runs a second are wanted; with `--jobs` more than the engine can
do shows what it can; with `--batched` the recording executor takes many runs in one request. Results are counted when
they are stored. Lateness is from the due time to the arrival at the executor, so it includes the way there; "written"
is the admin's own count, to the moment its request is written, by buckets. A server (postgresql, mariadb) is one of its
own, made for the measurement, and durable. Lost: planned instants or rows without an execution; doubled: run twice.
"""

import argparse
import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import insert, text

from benchmarks.processes import cpu_s, free_port, resident_mib, stop, wait_for_port
from benchmarks.written import Buckets, percentile_ms, read_buckets
from jobwheel.admin.store import Connection, schema
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.tables import job_group, job_info
from jobwheel.kernel.clock import SystemClock
from tests.support.servers import EMPTY_DATABASE, SERVER_KINDS, running_server

_WARM_UP_S: Final = 5.0
_SETTLE_S: Final = 60.0
_EXECUTORS: Final = {"recording": "benchmarks.recording_executor", "sdk": "benchmarks.sdk_executor"}


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured."""

    database: str
    jobs: int
    seconds: float
    executor: str
    batched: bool = False


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
    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a measurement happens."""

    folder: Path
    admin_port: int
    executor_port: int
    token: str
    metrics_token: str
    database_url: str

    @property
    def record(self) -> Path:
        return self.folder / "executions"

    @property
    def admin_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}"


@dataclass(frozen=True, slots=True)
class _Sample:
    """Results stored so far, CPU seconds used, what the admin holds in memory, how late it has written."""

    results: int
    cpu_s: float
    executor_cpu_s: float
    rss_mib: float
    written: Buckets


def measure(load: Load) -> Figures:
    """Run one measurement; everything it starts has ended when it returns."""
    folder = Path(tempfile.mkdtemp(prefix="jobwheel-bench-"))
    try:
        with ExitStack() as stack:
            url = f"sqlite:///{folder / 'jobwheel.db'}"
            if load.database in SERVER_KINDS:
                url = stack.enter_context(_server_database(load.database))
            place = _Place(folder, free_port(), free_port(), secrets.token_urlsafe(24), secrets.token_urlsafe(24), url)
            _in_transaction(place, lambda connection: _fill(connection, load.jobs))
            return _measure_in(place, load)
    finally:
        shutil.rmtree(folder)


@contextmanager
def _server_database(kind: str) -> Iterator[str]:
    with running_server(kind, durable=True) as server:
        yield server.url(EMPTY_DATABASE)


def _measure_in(place: _Place, load: Load) -> Figures:
    with _admin(place) as admin, _executor(place, load) as executor:
        _run_sql(place, "UPDATE xxl_job_info SET trigger_status = 1, trigger_next_time = anchor_ms + 1000")
        time.sleep(_WARM_UP_S)
        before, before_s = _sample(place, admin.pid, executor.pid), time.perf_counter()
        began_ms = time.time_ns() // 1_000_000
        time.sleep(load.seconds)
        after, took_s = _sample(place, admin.pid, executor.pid), time.perf_counter() - before_s
        ended_ms = time.time_ns() // 1_000_000
        _run_sql(place, "UPDATE xxl_job_info SET trigger_status = 0")
        _wait_until_done(place)
        stop(executor)
        executions = [tuple(map(int, line.split())) for line in place.record.read_text().splitlines()]
        late = sorted(arrived - planned for _, planned, arrived in executions if began_ms <= planned < ended_ms)
        results = after.results - before.results
        return Figures(
            runs_per_s=round(results / took_s, 1),
            cpu_us_per_run=round((after.cpu_s - before.cpu_s) / max(1, results) * 1e6, 1),
            executor_cpu_us_per_run=round((after.executor_cpu_s - before.executor_cpu_s) / max(1, results) * 1e6, 1),
            lateness_p50_ms=late[len(late) // 2] if late else -1,
            lateness_p99_ms=late[len(late) * 99 // 100] if late else -1,
            written_p99_within_ms=percentile_ms(before.written, after.written, 0.99),
            rss_mib=round(after.rss_mib, 1),
            lost=_lost(place, {log_id for log_id, _, _ in executions}),
            doubled=sum(count - 1 for count in Counter(log_id for log_id, _, _ in executions).values()),
        )


def _lost(place: _Place, executed: set[int]) -> int:
    rows = _rows(place, "SELECT id, job_id, planned_ms, outcome FROM xxl_job_log")
    unexecuted = sum(1 for run_id, _, _, outcome in rows if run_id not in executed and outcome != "failed")
    instants: dict[int, list[int]] = {}
    for _, job_id, planned_ms, _ in rows:
        instants.setdefault(job_id, []).append(planned_ms)
    gaps = sum((max(times) - min(times)) // 1000 + 1 - len(set(times)) for times in instants.values())
    return unexecuted + gaps


def _fill(connection: Connection, jobs: int) -> None:
    schema.prepare(connection, "the benchmark's database")
    now_ms = time.time_ns() // 1_000_000
    connection.execute(insert(job_group).values(id=1, app_name="bench", title="Benchmark"))
    job = {
        "job_group": 1,
        "schedule_type": "FIX_RATE",
        "schedule_conf": "1",
        "executor_route_strategy": "FIRST",
        "executor_handler": "bench",
        "executor_param": "day=2026-11-27",
        "executor_block_strategy": "SERIAL_EXECUTION",
        "glue_type": "BEAN",
    }
    rows = [{**job, "job_desc": f"job {n}", "anchor_ms": now_ms + 4000 + 1000 * n // jobs} for n in range(jobs)]
    connection.execute(insert(job_info), rows)


def _in_transaction(place: _Place, work: Callable[[Connection], Any]) -> Any:
    async def run() -> Any:
        database = open_database(place.database_url, SystemClock(), exclusive=False)
        await database.start()
        try:
            return await database.write(work)
        finally:
            await database.stop()

    return asyncio.run(run())


def _rows(place: _Place, query: str) -> list[Any]:
    return list(_in_transaction(place, lambda connection: connection.execute(text(query)).all()))


@contextmanager
def _admin(place: _Place) -> Iterator["subprocess.Popen[bytes]"]:
    environment = {
        **os.environ,
        "JOBWHEEL_DATA_DIR": str(place.folder),
        "JOBWHEEL_DATABASE_URL": place.database_url,
        "JOBWHEEL_PORT": str(place.admin_port),
        "JOBWHEEL_ACCESS_TOKEN": place.token,
        "JOBWHEEL_METRICS_TOKEN": place.metrics_token,
        "JOBWHEEL_ADMIN_PASSWORD": secrets.token_urlsafe(12),
    }
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.admin_process"], env=environment)
    try:
        wait_for_port(place.admin_port)
        yield process
    finally:
        stop(process)


@contextmanager
def _executor(place: _Place, load: Load) -> Iterator["subprocess.Popen[bytes]"]:
    arguments = [str(place.executor_port), place.admin_url, place.token, str(place.record)]
    if load.batched:
        arguments.append("batched")
    process = subprocess.Popen([sys.executable, "-m", _EXECUTORS[load.executor], *arguments])
    try:
        wait_for_port(place.executor_port)
        yield process
    finally:
        stop(process)


def _sample(place: _Place, admin_pid: int, executor_pid: int) -> _Sample:
    ((results,),) = _rows(place, "SELECT COUNT(*) FROM xxl_job_log WHERE handle_code = 200")
    written = read_buckets(place.admin_url, place.metrics_token)
    return _Sample(results, cpu_s(admin_pid), cpu_s(executor_pid), resident_mib(admin_pid), written)


def _wait_until_done(place: _Place) -> None:
    deadline_s = time.perf_counter() + _SETTLE_S
    while time.perf_counter() < deadline_s:
        ((left,),) = _rows(place, "SELECT COUNT(*) FROM xxl_job_log WHERE phase IS NOT NULL")
        if not left:
            return
        time.sleep(0.2)


def _run_sql(place: _Place, statement: str) -> None:
    _in_transaction(place, lambda connection: connection.execute(text(statement)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--database", choices=["sqlite", *SERVER_KINDS], default="sqlite")
    parser.add_argument("--seconds", type=float, default=60.0)
    load = parser.add_mutually_exclusive_group()
    load.add_argument("--jobs", type=int, help="per-second jobs: more than the engine can do shows what it can")
    load.add_argument("--rate", type=int, help="runs a second that are wanted")
    parser.add_argument("--executor", choices=sorted(_EXECUTORS), default="recording")
    parser.add_argument("--batched", action="store_true", help="the recording executor takes many runs in one request")
    parser.add_argument("--json", action="store_true", help="one JSON line")
    options = parser.parse_args()
    if options.batched and options.executor != "recording":
        parser.error("--batched is for the recording executor; one on the SDK always takes batches")
    jobs = options.jobs or options.rate or 100
    figures = measure(Load(options.database, jobs, options.seconds, options.executor, options.batched))
    if options.json:
        print(json.dumps(asdict(figures)))
    else:
        for name, value in asdict(figures).items():
            print(f"{name:>18} {value}")


if __name__ == "__main__":
    main()
