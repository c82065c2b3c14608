"""The composition root: settings → database, engine, services, application."""

import os
import ssl
from dataclasses import dataclass

from jobwheel.admin.api.app import Services, create_app
from jobwheel.admin.api.wire import AsgiApp, WireEndpoints
from jobwheel.admin.engine.context import EngineContext, EngineLimits
from jobwheel.admin.engine.engine import Engine
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.services.deleted_jobs import DeletedJobs
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.installation import Installation, host_zone, prepare_installation
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.previews import Previews
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.services.registry import Registry
from jobwheel.admin.services.results import Results
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.triggers import Triggers
from jobwheel.admin.settings import Settings
from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import ServiceGroup
from jobwheel.schedule import Language
from jobwheel.wire.client import WireClient

_DELETED_JOBS_EVERY_S = 10


@dataclass(frozen=True, slots=True)
class Admin:
    """A built admin: its database is started, the rest is not."""

    database: Database
    installation: Installation
    engine: Engine
    services: Services
    workers: ServiceGroup
    app: AsgiApp


async def build_admin(settings: Settings, clock: Clock, *, apart: bool = False) -> Admin:
    """Open the database, make or check its schema, and put the admin together.

    The caller starts and stops `workers`, and stops the database at the very end. If this raises, nothing is left open.

    Raises:
        JobwheelError: the database cannot be used, or a setting does not fit it; says what to do.
    """
    database = open_database(
        settings.database_url,
        clock,
        apart=apart,
        connections=settings.database_connections,
        timeout_s=settings.database_timeout_s,
    )
    await database.start()
    try:
        await database.write_patiently(schema.prepare, database.where)
        passwords = Passwords()
        installation = await prepare_installation(database, clock, settings, passwords, host_zone(os.environ))
        return _assemble(settings, clock, database, installation, passwords)
    except BaseException:
        await database.stop()
        raise


def _assemble(
    settings: Settings, clock: Clock, database: Database, installation: Installation, passwords: Passwords
) -> Admin:
    zone = installation.zone
    wire = WireClient(clock, ssl_context=_ssl_context(settings))
    client = ExecutorClient(wire, installation.access_token, settings.send_timeout_s)
    engine = Engine(_engine_context(settings, clock, database, installation), client)
    jobs = Jobs(database, clock, zone, engine)
    progress = ProgressBook(clock)
    services = Services(
        clock=clock,
        zone_name=zone.name,
        sign_in=SignIn(database, clock, passwords),
        groups=Groups(database, clock, zone, engine.addresses),
        jobs=jobs,
        scripts=Scripts(database, clock, zone),
        triggers=Triggers(database, clock, zone, engine),
        previews=Previews(clock, zone, jobs),
        runs=Runs(database, progress),
        run_logs=RunLogs(database, zone, client),
        status=engine,
        metrics_token=settings.metrics_token,
    )
    registry = Registry(database, clock, zone, engine.addresses, auto_create_groups=settings.auto_create_groups)
    results = Results(clock, engine.writer, progress)
    endpoints = WireEndpoints(installation.access_tokens, registry, results, progress)
    deleted_jobs = PeriodicLoop("deleted_jobs", DeletedJobs(database).run_once, _DELETED_JOBS_EVERY_S, clock)
    workers = ServiceGroup("admin", clock, [wire, engine, deleted_jobs])
    return Admin(database, installation, engine, services, workers, endpoints.in_front_of(create_app(services)))


def _engine_context(settings: Settings, clock: Clock, database: Database, installation: Installation) -> EngineContext:
    limits = EngineLimits(
        look_ahead_s=settings.look_ahead_s,
        claim_batch=settings.claim_batch,
        misfire_most=settings.misfire_most,
        fast_lane=settings.fast_lane,
        slow_lane=settings.slow_lane,
        slow_send_ms=settings.slow_send_ms,
        slow_sends=settings.slow_sends,
        address_limit=settings.address_limit,
        send_timeout_s=settings.send_timeout_s,
        wheel_capacity=settings.wheel_capacity,
    )
    messages = TriggerMessages(Language(settings.language))
    return EngineContext(database, installation.zone, clock, Node(database, clock), Counters(), limits, messages)


def _ssl_context(settings: Settings) -> ssl.SSLContext | None:
    if settings.ca_file is None:
        return None
    return ssl.create_default_context(cafile=str(settings.ca_file))
