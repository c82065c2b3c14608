"""The admin's services and web application on a real SQLite file, with a fake scheduler and a fake clock."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
from starlette.types import ASGIApp

from jobwheel.admin.api.app import Services, create_app
from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.figures import EngineFigures, HealthReason
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.installation import prepare_installation
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.previews import Previews
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.triggers import Triggers
from jobwheel.admin.settings import Settings
from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.kernel.secret import Secret
from jobwheel.wire.messages import LogPage, LogQuery

BASE_URL = "http://jobwheel.test"
# 2026-11-27T02:30:00.250Z
NOW_MS = 1_795_746_600_250
ZONE = "Asia/Shanghai"
_NODE = NodeId(1)


@dataclass
class FakeScheduler:
    """Records what it is told."""

    node_id: NodeId = _NODE
    wakes: int = 0
    flown: list[PendingRun] = field(default_factory=list)

    def wake(self) -> None:
        self.wakes += 1

    def fly(self, runs: Sequence[PendingRun]) -> None:
        self.flown += runs


@dataclass
class FakeStatus:
    """Says what a test wants it to say."""

    said: list[HealthReason] = field(default_factory=list)
    figures: EngineFigures = field(default_factory=EngineFigures)

    def reasons(self) -> Sequence[HealthReason]:
        return self.said

    def collect(self) -> EngineFigures:
        return self.figures


@dataclass
class FakeLogSource:
    """Gives the page (or raises the error) that a test put in, and records what it was asked."""

    page: LogPage | Exception = field(default_factory=lambda: LogPage(1, 0, "", is_end=False))
    asked: list[tuple[str, LogQuery]] = field(default_factory=list)

    async def read_log(self, address: str, app_name: str, query: LogQuery) -> LogPage:
        self.asked.append((address, query))
        if isinstance(self.page, Exception):
            raise self.page
        return self.page


@dataclass
class AdminHarness:
    """Everything that a test of the services or of the API may look at."""

    database: Database
    clock: FakeClock
    zone: InstallationZone
    scheduler: FakeScheduler
    status: FakeStatus
    log_source: FakeLogSource
    progress: ProgressBook
    passwords: Passwords
    password: str
    services: Services
    app: ASGIApp
    guest: httpx.AsyncClient
    client: httpx.AsyncClient


def new_client(app: ASGIApp) -> httpx.AsyncClient:
    """A client without a session."""
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=("192.0.2.1", 40_000))
    return httpx.AsyncClient(transport=transport, base_url=BASE_URL)


@contextlib.asynccontextmanager
async def open_admin_database(path: Path, clock: FakeClock) -> AsyncIterator[Database]:
    """A database with the schema and nothing else."""
    database = open_database(f"sqlite:///{path / 'jobwheel.db'}", clock)
    await database.start()
    try:
        await database.write(schema.prepare, "test")
        yield database
    finally:
        await database.stop()


@contextlib.asynccontextmanager
async def admin_harness(path: Path, metrics_token: Secret | None = None) -> AsyncIterator[AdminHarness]:
    """A running admin without an engine; `client` is signed in as `admin`, `guest` is not."""
    clock = FakeClock(NOW_MS)
    passwords = Passwords()
    password = secrets.token_urlsafe(12)
    settings = replace(Settings(), admin_password=Secret(password))
    try:
        async with open_admin_database(path, clock) as database:
            made = await prepare_installation(database, clock, settings, passwords, ZONE)
            scheduler, status, log_source = FakeScheduler(), FakeStatus(), FakeLogSource()
            jobs = Jobs(database, clock, made.zone, scheduler)
            progress = ProgressBook(clock)
            services = Services(
                clock=clock,
                zone_name=made.zone.name,
                sign_in=SignIn(database, clock, passwords),
                groups=Groups(database, clock, made.zone, AddressBook(database)),
                jobs=jobs,
                scripts=Scripts(database, clock, made.zone),
                triggers=Triggers(database, clock, made.zone, scheduler),
                previews=Previews(clock, made.zone, jobs),
                runs=Runs(database, progress),
                run_logs=RunLogs(database, made.zone, log_source),
                status=status,
                metrics_token=metrics_token,
            )
            app = create_app(services)
            async with new_client(app) as guest, new_client(app) as client:
                await sign_in(client, password)
                yield AdminHarness(
                    database=database,
                    clock=clock,
                    zone=made.zone,
                    scheduler=scheduler,
                    status=status,
                    log_source=log_source,
                    progress=progress,
                    passwords=passwords,
                    password=password,
                    services=services,
                    app=app,
                    guest=guest,
                    client=client,
                )
    finally:
        passwords.close()


async def sign_in(client: httpx.AsyncClient, password: str) -> None:
    """Give a client the session of `admin`."""
    reply = await client.post("/api/v1/session", json={"username": "admin", "password": password})
    assert reply.status_code == 201, reply.text
