"""The composition root: settings → database, engine, services, application."""

import os
import ssl
from dataclasses import dataclass

from jobwheel.admin.alarms.kinds import all_kinds
from jobwheel.admin.api.app import Services, create_app
from jobwheel.admin.api.wire import AsgiApp, WireEndpoints
from jobwheel.admin.api.wire_jobs import WireJobs
from jobwheel.admin.engine.context import EngineContext, EngineLimits
from jobwheel.admin.engine.engine import Engine
from jobwheel.admin.engine.executor_client import ExecutorClient
from jobwheel.admin.engine.figures import Counters
from jobwheel.admin.engine.node import Node
from jobwheel.admin.engine.trigger_message import TriggerMessages
from jobwheel.admin.services.alarms import AlarmOptions, Alarms
from jobwheel.admin.services.api_tokens import ApiTokens
from jobwheel.admin.services.backfills import Backfills
from jobwheel.admin.services.belonging import Belonging
from jobwheel.admin.services.bulk_jobs import BulkJobs
from jobwheel.admin.services.clean_ups import CleanUps, CleanUpWork
from jobwheel.admin.services.credentials import WireCredentials
from jobwheel.admin.services.deleted_jobs import DeletedJobs
from jobwheel.admin.services.group_tokens import GroupTokens
from jobwheel.admin.services.groups import Groups
from jobwheel.admin.services.installation import Installation, host_zone, prepare_installation
from jobwheel.admin.services.job_document_tools import Tools
from jobwheel.admin.services.job_documents import JobDocuments
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.kills import Kills
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.planner_statistics import PlannerStatistics
from jobwheel.admin.services.previews import Previews
from jobwheel.admin.services.probes import Probes
from jobwheel.admin.services.progress import ProgressBook
from jobwheel.admin.services.registry import Registry
from jobwheel.admin.services.reports import Reports
from jobwheel.admin.services.reruns import Reruns
from jobwheel.admin.services.results import Results
from jobwheel.admin.services.retention import KeptDays, Retention
from jobwheel.admin.services.run_counting import RunCounting
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.run_waits import RunWaits
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.services.scripts import Scripts
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.triggers import Triggers
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.settings import Settings
from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, open_database
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import ServiceGroup
from jobwheel.schedule import Language
from jobwheel.wire.client import WireClient

_DELETED_JOBS_EVERY_S = 10
_COUNT_EVERY_S = 60
_RETENTION_EVERY_S = 300
_CLEAN_UPS_EVERY_S = 5
_STATISTICS_EVERY_S = 300


@dataclass(frozen=True, slots=True)
class Admin:
    """A built admin: its database is started, the rest is not.

    `waits` are for requests that wait: started last and stopped first, so that these hold up no stop.
    """

    database: Database
    installation: Installation
    engine: Engine
    services: Services
    workers: ServiceGroup
    waits: RunWaits
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
    wire = WireClient(clock, connect_timeout_s=settings.send_timeout_s, ssl_context=_ssl_context(settings))
    client = ExecutorClient(wire, installation.access_token, settings.send_timeout_s)
    context = _engine_context(settings, clock, database, installation)
    engine = Engine(context, client)
    jobs = Jobs(database, clock, zone, engine)
    groups = Groups(database, clock, zone, engine.addresses)
    scripts = Scripts(database, clock, zone)
    triggers = Triggers(database, clock, zone, engine)
    progress = ProgressBook(clock)
    waits = RunWaits(database, clock)
    upkeep = _Upkeep(settings, clock, database, zone, engine)
    alarms = Alarms(database, clock, context.node, engine, all_kinds(), _alarm_options(settings, zone.name))
    services = Services(
        clock=clock,
        zone_name=zone.name,
        sign_in=SignIn(database, clock, passwords),
        api_tokens=ApiTokens(database, clock, zone),
        belonging=Belonging(database),
        groups=groups,
        probes=Probes(groups, client, clock),
        group_tokens=GroupTokens(database, clock, zone, groups.make_known),
        jobs=jobs,
        job_documents=JobDocuments(database, engine, Tools(jobs, scripts, groups, zone)),
        bulk_jobs=BulkJobs(jobs, triggers),
        backfills=Backfills(database, clock, zone, engine),
        reruns=Reruns(database, clock, zone, engine),
        scripts=scripts,
        triggers=triggers,
        previews=Previews(clock, zone, jobs),
        runs=Runs(database, progress, waits),
        kills=Kills(database, clock, zone, engine, context.messages),
        run_logs=RunLogs(database, zone, client),
        clean_ups=CleanUps(database, clock, zone, upkeep.clean_ups.wake),
        reports=Reports(database, clock, zone),
        alarm_channels=alarms.channels,
        status=engine,
        metrics_token=settings.metrics_token,
    )
    registry = Registry(database, clock, zone, engine.addresses, auto_create_groups=settings.auto_create_groups)
    results = Results(database, clock, engine.writer, progress)
    credentials = WireCredentials(installation.access_tokens, engine.addresses)
    endpoints = WireEndpoints(credentials, registry, results, progress, WireJobs(services))
    workers = ServiceGroup("admin", clock, [wire, engine, alarms, *upkeep.loops])
    return Admin(database, installation, engine, services, workers, waits, endpoints.in_front_of(create_app(services)))


class _Upkeep:
    """The loops that count and remove."""

    def __init__(
        self, settings: Settings, clock: Clock, database: Database, zone: InstallationZone, engine: Engine
    ) -> None:
        def turn(name: str) -> Turn:
            return Turn(name, database, lambda: engine.node_id)

        kept = KeptDays(settings.run_retention_days, settings.event_retention_days, settings.session_retention_days)
        counting = RunCounting(database, clock, zone, turn("run_counting"), settings.run_retention_days)
        retention = Retention(database, clock, zone, kept, turn("retention"))
        clean_ups = CleanUpWork(database, clock, turn("clean_ups"))
        statistics = PlannerStatistics(database, clock, turn("planner_statistics"))
        self.clean_ups = PeriodicLoop("clean_ups", clean_ups.run_once, _CLEAN_UPS_EVERY_S, clock)
        self.loops = (
            PeriodicLoop("deleted_jobs", DeletedJobs(database).run_once, _DELETED_JOBS_EVERY_S, clock),
            PeriodicLoop("run_counting", counting.run_once, _COUNT_EVERY_S, clock),
            PeriodicLoop("retention", retention.run_once, _RETENTION_EVERY_S, clock),
            self.clean_ups,
            PeriodicLoop("planner_statistics", statistics.run_once, _STATISTICS_EVERY_S, clock),
        )


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


def _alarm_options(settings: Settings, zone_name: str) -> AlarmOptions:
    return AlarmOptions(
        zone_name,
        Language(settings.language),
        settings.public_url,
        allows_private=settings.alarms_to_private_addresses,
        tls=_ssl_context(settings),
    )


def _ssl_context(settings: Settings) -> ssl.SSLContext | None:
    if settings.ca_file is None:
        return None
    return ssl.create_default_context(cafile=str(settings.ca_file))
