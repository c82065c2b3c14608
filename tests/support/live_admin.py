"""A whole admin in the test's own process: real engine, real HTTP, real SQLite file, the machine's clock."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from sqlalchemy import update

from jobwheel.admin.build import Admin, build_admin
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import PendingRun, Run, TriggerType
from jobwheel.admin.services.triggers import Trigger
from jobwheel.admin.settings import load_settings
from jobwheel.admin.store.groups import find_groups
from jobwheel.admin.store.run_list import RunFilter, get_run, list_runs
from jobwheel.admin.store.runs import insert_runs
from jobwheel.admin.store.tables import job_info, job_log
from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.service import ServiceGroup
from jobwheel.wire.http_server import HttpOptions, HttpServer, listen
from tests.support.recording_executor import Answer, RecordingExecutor, accept
from tests.support.store import new_run

Seen = TypeVar("Seen")
CLOCK = SystemClock()
DEADLINE_S: Final = 20.0
"""For what takes a second at most on an idle machine; on a busy one nothing is wrong that takes ten."""


@dataclass
class LiveAdmin:
    """A running admin, and short ways to its services."""

    admin: Admin
    url: str
    token: str

    def executor(self, answer: Answer = accept, **fields: Any) -> RecordingExecutor:
        """An executor of this admin; enter it, then register it."""
        return RecordingExecutor(self.url, self.token, answer, **fields)

    @contextlib.asynccontextmanager
    async def executors(
        self, count: int, instance: str | None = None, answer: Answer = accept, **fields: Any
    ) -> AsyncIterator[list[RecordingExecutor]]:
        """So many registered executors of one group, in the order of their addresses."""
        async with contextlib.AsyncExitStack() as stack:
            started = [self.executor(answer, instance=instance, **fields) for _ in range(count)]
            made = [await stack.enter_async_context(each) for each in started]
            for each in made:
                await each.register()
            yield sorted(made, key=lambda executor: executor.address)

    async def group_id(self, app_name: str = "orders") -> GroupId:
        groups = await self.admin.database.read(find_groups, self.admin.installation.zone, app_name)
        return groups[0].id

    async def job(self, *, running: bool = False, app_name: str = "orders", **fields: object) -> Job:
        """A job of the app name's group; one without a schedule unless the fields say otherwise."""
        given: dict[str, Any] = {
            "group_id": await self.group_id(app_name),
            "name": "settle accounts",
            "handler": "settle",
            "schedule_type": "NONE",
            "schedule_conf": "",
            **fields,
        }
        return await self.admin.services.jobs.create(given, running=running, actor="test")

    async def trigger(self, job: Job, *addresses: str) -> RunId:
        run = await self.admin.services.triggers.trigger(
            job.id, Trigger(TriggerType.MANUAL, addresses=addresses), actor="test"
        )
        return run.id

    async def late_run(self, job: Job) -> PendingRun:
        """A run of the job that was planned a minute ago, and has not been sent yet."""
        late = new_run(self.admin.engine.node_id, CLOCK.now() - 60_000, job_id=job.id, group_id=await self.group_id())
        (run,) = await self.admin.database.write(insert_runs, self.admin.installation.zone, [late])
        return run

    async def run(self, run_id: RunId) -> Run:
        run = await self.admin.database.read(get_run, run_id)
        assert run is not None
        return run

    async def runs(self, job: Job) -> list[Run]:
        """The job's runs, oldest first."""
        return (await self.admin.database.read(list_runs, RunFilter(job_id=job.id), None, 1000))[::-1]

    async def run_when(self, run_id: RunId, condition: Callable[[Run], bool], within_s: float = DEADLINE_S) -> Run:
        """The run, once the condition holds for it."""

        async def look() -> Run | None:
            run = await self.run(run_id)
            return run if condition(run) else None

        return await seen(look, within_s)

    async def done(self, run_id: RunId, within_s: float = DEADLINE_S) -> Run:
        return await self.run_when(run_id, lambda run: run.phase is None, within_s)

    async def change_run(self, run_id: RunId, **columns: object) -> None:
        statement = update(job_log).where(job_log.c.id == run_id).values(columns)
        await self.admin.database.write(lambda c: c.execute(statement))

    async def change_job(self, job_id: JobId, **columns: object) -> None:
        statement = update(job_info).where(job_info.c.id == job_id).values(columns)
        await self.admin.database.write(lambda c: c.execute(statement))

    async def event_kinds(self, job: Job) -> list[str]:
        return [each.kind for each in await self.admin.services.jobs.events(job.id, None, 100)][::-1]


@contextlib.asynccontextmanager
async def live_admin(
    path: Path, token: str | None = None, *, clock: Clock = CLOCK, port: int = 0, **settings: object
) -> AsyncIterator[LiveAdmin]:
    """An admin on the data directory `path` and a free port unless one is given, stopped gracefully at the end."""
    access_token = token or secrets.token_urlsafe(16)
    wanted = {"data_dir": path, "access_token": access_token, "auto_create_groups": True, **settings}
    admin = await build_admin(load_settings({}, wanted).settings, clock)
    try:
        listener = listen("127.0.0.1", port)
        port = listener.getsockname()[1]
        http = HttpServer("admin.http", admin.app, listener, clock, HttpOptions(grace_s=1))
        everything = ServiceGroup("admin", clock, [admin.workers, http])
        try:
            await everything.start()
            yield LiveAdmin(admin, f"http://127.0.0.1:{port}", access_token)
        finally:
            await everything.stop()
            listener.close()
    finally:
        await admin.database.stop()


async def seen(look: Callable[[], Awaitable[Seen | None]], within_s: float = DEADLINE_S) -> Seen:
    """What `look` sees, once it sees anything (None and False are nothing).

    Raises:
        TimeoutError: it saw nothing within the time.
    """
    async with asyncio.timeout(within_s):
        while True:
            found = await look()
            if found:
                return found
            await CLOCK.wait(0.01)


async def until(condition: Callable[[], bool], within_s: float = DEADLINE_S) -> None:
    """Return once the condition holds.

    Raises:
        TimeoutError: it does not hold within the time.
    """

    async def look() -> bool:
        return condition()

    await seen(look, within_s)
