"""The admin's services and web application on a real SQLite file, with a fake scheduler and a fake clock."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import httpx
from starlette.types import ASGIApp

from jobwheel.admin.alarms.kinds import own_kinds
from jobwheel.admin.api.app import Services, behind_gate
from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from jobwheel.admin.engine.figures import EngineFigures, HealthReason
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.services.alarms import AlarmOptions, Alarms
from jobwheel.admin.services.api_tokens import ApiTokens
from jobwheel.admin.services.backfills import Backfills
from jobwheel.admin.services.belonging import Belonging
from jobwheel.admin.services.bulk_jobs import BulkJobs
from jobwheel.admin.services.clean_ups import CleanUps
from jobwheel.admin.services.group_tokens import GroupTokens
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.installation import prepare_installation
from jobwheel.admin.services.job_document_tools import Tools
from jobwheel.admin.services.job_documents import JobDocuments
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.kills import Kills
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.previews import Previews
from jobwheel.admin.services.probes import Probes
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.reruns import Reruns
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.run_waits import RunWaits
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.triggers import Triggers
from jobwheel.admin.settings import Settings
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.kernel.secret import Secret
from jobwheel.wire.messages import LogPage, LogQuery
from tests.support.app_routes import routes_for
from tests.support.sqlite_file import make_sqlite_file
from tests.support.store import open_store_at

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
    killed: list[RunId] = field(default_factory=list)
    kill_passes: int = 0

    def wake(self) -> None:
        self.wakes += 1

    def fly(self, runs: Sequence[PendingRun]) -> None:
        self.flown += runs

    async def carry_out_kills(self, pending: Sequence[RunId]) -> None:
        self.kill_passes += 1
        self.killed += pending


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
    """Gives the page (or raises the error) that a test put in, and records what it was asked.

    It is alive as an executor, unless a test says otherwise.
    """

    answer: Answer = field(default_factory=lambda: Answer(AnswerKind.ACCEPTED, 200, ""))
    page: LogPage | Exception = field(default_factory=lambda: LogPage(1, 0, "", is_end=False))
    asked: list[tuple[str, LogQuery]] = field(default_factory=list)

    async def read_log(self, address: str, app_name: str, query: LogQuery) -> LogPage:
        self.asked.append((address, query))
        if isinstance(self.page, Exception):
            raise self.page
        return self.page

    async def beat(self, address: str, app_name: str) -> Answer:
        return self.answer


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
    waits: RunWaits
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
    make_sqlite_file(path)
    database = open_database(f"sqlite:///{path / 'jobwheel.db'}", clock)
    await database.start()
    try:
        yield database
    finally:
        await database.stop()


@contextlib.asynccontextmanager
async def _open_database(path: Path, clock: FakeClock, url: str | None) -> AsyncIterator[Database]:
    if url is None:
        async with open_admin_database(path, clock) as database:
            yield database
    else:
        async with open_store_at(url, clock) as store:
            yield store.database


@contextlib.asynccontextmanager
async def admin_harness(
    path: Path, metrics_token: Secret | None = None, database_url: str | None = None
) -> AsyncIterator[AdminHarness]:
    """A running admin without an engine; `client` is signed in as `admin`, `guest` is not.

    Its database is a file in the folder, or the one of the URL, emptied.
    """
    clock = FakeClock(NOW_MS)
    passwords = Passwords()
    password = secrets.token_urlsafe(12)
    settings = replace(Settings(), admin_password=Secret(password))
    try:
        async with _open_database(path, clock, database_url) as database:
            made = await prepare_installation(database, clock, settings, passwords, ZONE)
            scheduler, status, log_source = FakeScheduler(), FakeStatus(), FakeLogSource()
            jobs = Jobs(database, clock, made.zone, scheduler)
            groups = Groups(database, clock, made.zone, AddressBook(database))
            scripts = Scripts(database, clock, made.zone)
            triggers = Triggers(database, clock, made.zone, scheduler)
            progress, waits = ProgressBook(clock), RunWaits(database, clock)
            groups = Groups(database, clock, made.zone, AddressBook(database))
            alarms = Alarms(
                database,
                clock,
                Node(database, clock),
                status,
                own_kinds(),
                AlarmOptions(made.zone.name, allows_private=True),
            )
            services = Services(
                clock=clock,
                zone_name=made.zone.name,
                sign_in=SignIn(database, clock, passwords),
                api_tokens=ApiTokens(database, clock, made.zone),
                belonging=Belonging(database),
                groups=groups,
                probes=Probes(groups, log_source, clock),
                group_tokens=GroupTokens(database, clock, made.zone, groups.make_known),
                jobs=jobs,
                job_documents=JobDocuments(database, scheduler, Tools(jobs, scripts, groups, made.zone)),
                bulk_jobs=BulkJobs(jobs, triggers),
                backfills=Backfills(database, clock, made.zone, scheduler),
                reruns=Reruns(database, clock, made.zone, scheduler),
                scripts=scripts,
                triggers=triggers,
                previews=Previews(clock, made.zone, jobs),
                runs=Runs(database, progress, waits),
                kills=Kills(database, clock, made.zone, scheduler, TriggerMessages()),
                run_logs=RunLogs(database, made.zone, log_source),
                clean_ups=CleanUps(database, clock, made.zone),
                reports=Reports(database, clock, made.zone),
                alarm_channels=alarms.channels,
                status=status,
                metrics_token=metrics_token,
            )
            with routes_for(services) as routes:
                app = behind_gate(services, routes)
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
                        waits=waits,
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
