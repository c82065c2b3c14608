"""Admins and executors as processes, per-second jobs, and what is left to judge when they are gone."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from jobwheel.admin.build import build_admin
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import Run
from jobwheel.admin.settings import load_settings
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.run_list import RunFilter, list_runs
from jobwheel.kernel.clock import SystemClock
from tests.support.checker import Instant, MisfireRecord, Start

CLOCK = SystemClock()
ROOT = Path(__file__).parents[2]
# Several processes that start at once on a busy machine take their time.
_FIRST_LINE_S = 120


@dataclass
class Scene:
    """Where everything is."""

    data_dir: Path
    token: str
    admin_port: int
    executor_port: int
    database_url: str = ""
    # Where processes write their logs to; None = where the tests do.
    log_path: Path | None = None

    @property
    def settings(self) -> dict[str, object]:
        """What an admin of the scene is told."""
        url = {"database_url": self.database_url} if self.database_url else {}
        return {"data_dir": self.data_dir, "access_token": self.token, **url}

    @property
    def starts_path(self) -> Path:
        return self.data_dir.parent / "starts.jsonl"

    @contextlib.asynccontextmanager
    async def process(self, *arguments: object) -> AsyncIterator[asyncio.subprocess.Process]:
        """A process that has said its first line; killed at the end if it still runs."""
        with contextlib.ExitStack() as stack:
            log = None if self.log_path is None else stack.enter_context(self.log_path.open("ab"))
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *map(str, arguments), stdout=asyncio.subprocess.PIPE, stderr=log, cwd=ROOT
            )
        try:
            assert process.stdout is not None
            assert await asyncio.wait_for(process.stdout.readline(), _FIRST_LINE_S)
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            # Reads to the end as well, so that no pipe is left open.
            await process.communicate()

    def admin(self, port: int = 0) -> contextlib.AbstractAsyncContextManager[asyncio.subprocess.Process]:
        """An admin, on the scene's port unless another is given."""
        more = [self.database_url] if self.database_url else []
        return self.process("tests.support.admin_process", self.data_dir, port or self.admin_port, self.token, *more)

    def executor(self, instance: str | None) -> contextlib.AbstractAsyncContextManager[asyncio.subprocess.Process]:
        url = f"http://127.0.0.1:{self.admin_port}"
        more = [] if instance is None else [instance]
        return self.process(
            "tests.support.executor_process", url, self.token, self.executor_port, self.starts_path, *more
        )


async def make_jobs(scene: Scene, count: int, special: Sequence[Mapping[str, object]] = ()) -> list[JobId]:
    """Per-second jobs, running from now on, in a database whose admin does not run yet.

    The first ones have the fields of `special`.
    """
    admin = await build_admin(load_settings({}, scene.settings).settings, CLOCK)
    try:
        group = {"app_name": "orders", "title": "Orders"}
        view = await admin.services.groups.create(group, actor="test")
        given = {
            "group_id": view.group.id,
            "name": "each second",
            "handler": "settle",
            "schedule_type": "CRON",
            "schedule_conf": "* * * * * ?",
        }
        fields = [*special, *[{}] * (count - len(special))]
        return [(await admin.services.jobs.create({**given, **each}, running=True, actor="test")).id for each in fields]
    finally:
        await admin.database.stop()


def read_starts(path: Path) -> list[Start]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [Start(line["job"], line["log"], line["planned"], line["at"]) for line in lines]


def scheduled(runs: Iterable[Run]) -> list[Instant]:
    """An instant for each run whose cause is the job's schedule: there must be one run of each."""
    return [(run.job_id, run.planned_ms or 0) for run in runs if run.trigger_type and run.trigger_type.by_schedule]


def record(job_id: int, details: object) -> MisfireRecord:
    assert isinstance(details, dict)
    first, last = (int(datetime.fromisoformat(details[name]).timestamp() * 1000) for name in ("from", "until"))
    # Instants that a stop or an edit has dropped have no number of runs: none of them runs.
    return MisfireRecord(job_id, details["count"], first, last, details.get("runs", 0))


async def read_admin(
    scene: Scene, jobs: list[JobId], since_ms: int | None = None
) -> tuple[list[MisfireRecord], list[Run]]:
    """The misfires and the runs that the admin has recorded, of instants from `since_ms` on."""
    database = open_database(load_settings({}, scene.settings).settings.database_url, CLOCK)
    await database.start()
    try:
        misfires, runs = [], []
        for job_id in jobs:
            events = await database.read(list_job_events, job_id, None, 10_000)
            misfires += [record(job_id, event.details) for event in events if event.kind == "job.misfired"]
            wanted = RunFilter(job_id=job_id, planned_from_ms=since_ms)
            runs += await database.read(list_runs, wanted, None, 1_000_000)
        return [each for each in misfires if since_ms is None or each.last_ms >= since_ms], runs
    finally:
        await database.stop()
