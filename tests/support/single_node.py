"""One admin process on SQLite, who operates it over REST, and what its database says."""

import asyncio
import contextlib
import secrets
import sqlite3
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from jobwheel.admin.build import build_admin
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.settings import load_settings
from tests.support.checker import Start, Verdict, judge
from tests.support.http_peer import unused_port
from tests.support.live_admin import seen
from tests.support.scene import CLOCK, Scene

PASSWORD = secrets.token_urlsafe(12)
EVERY_SECOND: dict[str, Any] = {"schedule_type": "CRON", "schedule_conf": "* * * * * ?"}
BY_HAND: dict[str, Any] = {"schedule_type": "NONE", "schedule_conf": ""}
Row = tuple[Any, ...]


async def new_scene(path: Path, *app_names: str) -> Scene:
    """A scene whose database is made, with a group for each app name (`orders` if none is given)."""
    scene = Scene(path / "data", secrets.token_urlsafe(16), unused_port(), unused_port())
    await make_database(scene, *app_names)
    return scene


async def make_database(scene: Scene, *app_names: str) -> None:
    """Make the schema of the scene's database, somebody who may sign in, and the groups."""
    wanted = {**scene.settings, "admin_password": PASSWORD}
    admin = await build_admin(load_settings({}, wanted).settings, CLOCK)
    try:
        for app_name in app_names or ("orders",):
            await admin.services.groups.create({"app_name": app_name, "title": app_name}, actor="test")
    finally:
        await admin.database.stop()


@dataclass(frozen=True, slots=True)
class Operator:
    """A person who is signed in at the admin's REST API."""

    client: httpx.AsyncClient

    async def ask(self, method: str, path: str, **body: object) -> Any:
        """The JSON of a reply that is no refusal."""
        reply = await self.client.request(method, f"/api/v1/{path}", json=body or None)
        assert reply.is_success, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    async def job(self, *, group_id: int = 1, running: bool = False, **fields: object) -> JobId:
        """Make a job; one without a schedule unless the fields say otherwise."""
        given = {"group_id": group_id, "name": "settle accounts", "handler": "settle", **BY_HAND, **fields}
        return JobId((await self.ask("POST", "jobs", running=running, **given))["id"])

    async def jobs(self, count: int, **fields: Any) -> list[JobId]:
        return [await self.job(**fields) for _ in range(count)]

    async def trigger(self, job_id: JobId) -> int:
        """Run a job by hand; the run's id."""
        return int((await self.ask("POST", f"jobs/{job_id}/run"))["id"])


@contextlib.asynccontextmanager
async def operator(scene: Scene) -> AsyncIterator[Operator]:
    """Somebody signed in at the scene's admin, which runs."""
    base = f"http://127.0.0.1:{scene.admin_port}"
    limits = httpx.Limits(max_connections=20)
    async with httpx.AsyncClient(base_url=base, limits=limits, timeout=120, trust_env=False) as client:
        someone = Operator(client)
        await someone.ask("POST", "session", username="admin", password=PASSWORD)
        yield someone


def working_executor(scene: Scene, address: str = "") -> contextlib.AbstractAsyncContextManager[Any]:
    """An executor process on the SDK; with an address it registers that instead of its own."""
    url = f"http://127.0.0.1:{scene.admin_port}"
    more = [address] if address else []
    return scene.process(
        "tests.support.working_executor_process", url, scene.token, scene.executor_port, scene.starts_path, *more
    )


async def rows(scene: Scene, query: str, *values: object) -> list[Row]:
    """What a query gives at the moment, whether the admin runs or not."""
    return await asyncio.to_thread(_execute, scene, query, values)


def _execute(scene: Scene, query: str, values: Sequence[object]) -> list[Row]:
    with contextlib.closing(sqlite3.connect(scene.data_dir / "jobwheel.db", timeout=10)) as connection:
        found = connection.execute(query, values).fetchall()
        connection.commit()
        return found


async def rows_when(scene: Scene, query: str, *values: object, within_s: float = 30.0) -> list[Row]:
    """What a query gives, once it gives anything."""

    async def look() -> list[Row]:
        await CLOCK.wait(0.05)
        return await rows(scene, query, *values)

    return await seen(look, within_s)


async def beaten(scene: Scene) -> None:
    """Return once an executor has beaten, from now on: rows of those that are gone stay for a while."""
    await rows_when(scene, "SELECT 1 FROM xxl_job_registry WHERE beat_ms > ? LIMIT 1", CLOCK.now())


async def settled(scene: Scene, before_ms: int, within_s: float = 40.0) -> None:
    """Return once no run planned before the moment is pending, being sent or unconfirmed.

    Raises:
        TimeoutError: there still is one; its row stays for who looks.
    """
    query = "SELECT count(*) FROM xxl_job_log WHERE phase IN ('pending','sending','unconfirmed') AND planned_ms < ?"

    async def look() -> bool:
        await CLOCK.wait(0.05)
        return await rows(scene, query, before_ms) == [(0,)]

    await seen(look, within_s)


async def done(scene: Scene, run_ids: Iterable[int], within_s: float = 60.0) -> None:
    """Return once each of these runs has an outcome."""
    wanted = set(run_ids)

    async def look() -> bool:
        await CLOCK.wait(0.05)
        return wanted <= {each for (each,) in await rows(scene, "SELECT id FROM xxl_job_log WHERE phase IS NULL")}

    await seen(look, within_s)


def every_second(jobs: Iterable[JobId], from_ms: int, until_ms: int) -> list[tuple[int, int]]:
    """(job, instant) of per-second jobs, for all whole seconds from `from_ms` until `until_ms` (not included)."""
    first_ms = -(-from_ms // 1000) * 1000
    return [(job_id, instant) for job_id in jobs for instant in range(first_ms, until_ms, 1000)]


async def judge_runs(scene: Scene, executions: Iterable[tuple[int, int]]) -> Verdict:
    """Match every run of the database, by its planned time, with the executions: (run's id, when it began).

    A run that failed, or is lost, and says why needs no execution; one that has not ended does.
    """
    query = (
        "SELECT id, job_id, planned_ms, outcome = 'lost' OR (outcome = 'failed' AND handle_code = 0) FROM xxl_job_log"
    )
    runs = {run_id: (job_id, planned_ms, excused) for run_id, job_id, planned_ms, excused in await rows(scene, query)}
    unended = {run_id for (run_id,) in await rows(scene, "SELECT id FROM xxl_job_log WHERE phase IS NOT NULL")}
    starts = [Start(runs[run_id][0], run_id, runs[run_id][1], at_ms) for run_id, at_ms in executions]
    excused = [(job_id, planned_ms) for job_id, planned_ms, excused in runs.values() if excused]
    left_open = [(start.job_id, start.planned_ms) for start in starts if start.log_id in unended]
    planned = [(job_id, planned_ms) for job_id, planned_ms, _ in runs.values()]
    return judge(planned, starts, [], excused, left_open=left_open)
