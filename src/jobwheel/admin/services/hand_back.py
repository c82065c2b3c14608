"""Handing an installation back to an admin of XXL-JOB: what is lost, and the end of our own work on the database."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.java_admin import Loss, losses_of
from jobwheel.admin.domain.listing import listed
from jobwheel.admin.engine.node import DEAD_AFTER_S
from jobwheel.admin.services.errors import HandBackRefusedError
from jobwheel.admin.services.users import OPERATOR
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.hand_back import OnlyOurs, OpenRuns, count_open_runs, hold_schedule, let_go, read_only_ours
from jobwheel.admin.store.jobs import JobFilter, list_jobs
from jobwheel.admin.store.nodes import live_nodes
from jobwheel.admin.store.settings_table import ZONE, read_setting
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock

_PAGE = 500
_MESSAGE = "not sent: the installation was handed back to another admin"


@dataclass(frozen=True, slots=True)
class JobLosses:
    """A job of which something is lost."""

    job_id: JobId
    name: str
    running: bool
    losses: Sequence[Loss]


@dataclass(frozen=True, slots=True)
class HandBackReport:
    """What there is to know before an installation is handed back.

    Attributes:
        zone: the zone in which the other admin must run.
        jobs: those that lose something.
        installation: what is lost beside them.
        hosts: where admins of ours still run.
        open_runs: what is not done.
        is_possible: whether a Java admin can use this kind of database at all.
    """

    zone: str
    jobs: Sequence[JobLosses]
    installation: Sequence[Loss]
    hosts: Sequence[str]
    open_runs: OpenRuns
    is_possible: bool

    @property
    def grave(self) -> int:
        """How many things stand against it."""
        of_jobs = sum(loss.is_grave for job in self.jobs for loss in job.losses)
        return of_jobs + sum(loss.is_grave for loss in self.installation)


class HandBack:
    """The use cases of the operator, who works on the database itself."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def report(self) -> HandBackReport:
        """What would be lost, and what is in the way; nothing is changed."""
        return await self._database.read(self._report)

    async def carry_out(self, *, accept_losses: bool) -> OpenRuns:
        """Let go of all open runs, so that a Java admin may have the database; returns how many there were.

        Those that were not sent are ended, those that an executor has are the other admin's from now on.

        Raises:
            HandBackRefusedError: an admin of ours still runs, or something is lost that must not be, or nobody can use
                this kind of database.
        """
        return await self._database.write(self._carry_out, accept_losses)

    def _carry_out(self, connection: Connection, accept_losses: bool) -> OpenRuns:  # noqa: FBT001 - through `write`
        hold_schedule(connection)
        report = self._report(connection)
        check_hand_back(report, accept_losses=accept_losses)
        now_ms = self._clock.now()
        open_runs = let_go(connection, InstallationZone(report.zone), now_ms, _MESSAGE)
        details = {
            "losses": report.grave,
            "jobs": [job.job_id for job in report.jobs if any(loss.is_grave for loss in job.losses)],
            "runs_ended": open_runs.pending,
            "runs_left": open_runs.under_way,
        }
        insert_event(connection, NewEvent(EventKind.INSTALLATION_HANDED_BACK, now_ms, OPERATOR, details=details))
        return open_runs

    def _report(self, connection: Connection) -> HandBackReport:
        zone = read_setting(connection, ZONE) or "UTC"
        dead_ms = self._database.now_ms() - int(DEAD_AFTER_S * 1000)
        return HandBackReport(
            zone,
            list(self._jobs(connection, zone)),
            list(_losses_of_installation(read_only_ours(connection), self._database.kind)),
            [host for _, host, heartbeat_ms in live_nodes(connection) if heartbeat_ms >= dead_ms],
            count_open_runs(connection),
            self._database.kind != "sqlite",
        )

    def _jobs(self, connection: Connection, zone: str) -> Iterator[JobLosses]:
        now_ms, after_id = self._clock.now(), 0
        while page := list_jobs(connection, InstallationZone(zone), JobFilter(), after_id, _PAGE):
            for job in page:
                losses = losses_of(job.settings, zone, now_ms)
                if losses:
                    yield JobLosses(job.id, job.settings.name, job.running, losses)
            after_id = page[-1].id


def check_hand_back(report: HandBackReport, *, accept_losses: bool) -> None:
    """Let pass what may be handed back.

    Raises:
        HandBackRefusedError: as for `HandBack.carry_out`.
    """
    if not report.is_possible:
        raise HandBackRefusedError("no admin of XXL-JOB can use an SQLite file; Jobwheel alone can")
    if report.hosts:
        hosts = ", ".join(report.hosts)
        raise HandBackRefusedError(f"an admin of Jobwheel still runs ({hosts}): stop all of them first")
    if report.grave and not accept_losses:
        raise HandBackRefusedError(
            f"{report.grave} things, marked with !, would be lost: change these jobs and groups first, or accept it "
            "(--accept-losses)"
        )


def _losses_of_installation(ours: OnlyOurs, kind: str) -> Iterator[Loss]:
    if kind == "postgresql":
        yield Loss("database", "is made for MySQL: see first that yours can use PostgreSQL", is_grave=False)
    for app_name in ours.groups_with_tokens:
        yield Loss(f"tokens of the group {app_name}", "refuses executors that carry them: it has one token for all")
    if ours.users:
        names = listed(ours.users)
        yield Loss("passwords", f"lets these in with no password that they know: {names}", is_grave=False)
    if ours.alarm_channels:
        yield Loss("alarm channels", f"sends nothing through them ({ours.alarm_channels})", is_grave=False)
    if ours.api_tokens:
        yield Loss("API tokens", f"has no such API ({ours.api_tokens} are valid)", is_grave=False)
