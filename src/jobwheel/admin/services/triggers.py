"""Running a job now, because somebody says so."""

from collections.abc import Sequence
from dataclasses import dataclass

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.group import LIVE_FOR_MS, AddressType, Group
from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.domain.run import NewRun, PendingRun, Run, TriggerType, triggered_ms
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError
from jobwheel.admin.services.job_input import checked_parameter
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.groups import get_group, list_registrations
from jobwheel.admin.store.jobs import get_job, set_next_time
from jobwheel.admin.store.run_list import get_run
from jobwheel.admin.store.runs import insert_runs
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.schedule import ScheduleType


@dataclass(frozen=True, slots=True)
class Trigger:
    """What somebody asks for. `parameter` None = the job's own; no `addresses` = any of the group's."""

    trigger_type: TriggerType
    parameter: str | None = None
    addresses: tuple[str, ...] = ()


class Triggers(Scoped):
    """Makes runs by hand and through the API; also of jobs that are stopped."""

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, scheduler: Scheduler) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._scheduler = scheduler

    async def trigger(self, job_id: JobId, wanted: Trigger, *, actor: str) -> Run:
        """Write a run that is due now and let it fly.

        Raises:
            NotFoundError: there is no such job.
            InvalidFieldError: the parameter is too long, or an address is not one of the group's.
        """
        if wanted.parameter is not None:
            checked_parameter("parameter", wanted.parameter)
        pending, run = await self._database.write(self._trigger, job_id, wanted, actor)
        self._scheduler.fly(pending)
        return run

    def _trigger(
        self, connection: Connection, job_id: JobId, wanted: Trigger, actor: str
    ) -> tuple[list[PendingRun], Run]:
        job = get_job(connection, self._zone, job_id, lock=True)
        if job is None or self.hides(job.settings.group_id):
            raise NotFoundError("job", job_id)
        addresses = self._checked_addresses(connection, job, wanted.addresses)
        now_ms = self._clock.now()
        pending = insert_runs(connection, self._zone, [self._run(job, wanted, addresses, now_ms)])
        if job.running and job.settings.schedule_type is ScheduleType.FIX_DELAY:
            # While any run of it is open, the next one waits for its end.
            set_next_time(connection, job_id, AWAITING_SETTLEMENT_MS)
        self._record(connection, job, pending[0].id, wanted, actor)
        run = get_run(connection, pending[0].id)
        assert run is not None, "the run was written in this transaction"
        return pending, run

    def _run(self, job: Job, wanted: Trigger, addresses: tuple[str, ...], now_ms: int) -> NewRun:
        return NewRun(
            job_id=job.id,
            group_id=job.settings.group_id,
            trigger_type=wanted.trigger_type,
            planned_ms=now_ms,
            due_ms=now_ms,
            triggered_ms=triggered_ms(wanted.trigger_type, now_ms, now_ms),
            parameter=job.settings.parameter if wanted.parameter is None else wanted.parameter,
            owner=self._scheduler.node_id,
            named_addresses=addresses,
        )

    def _record(self, connection: Connection, job: Job, run_id: RunId, wanted: Trigger, actor: str) -> None:
        details = {
            "trigger_type": wanted.trigger_type.value,
            "parameter": wanted.parameter,
            "addresses": list(wanted.addresses),
        }
        new = NewEvent(
            EventKind.RUN_TRIGGERED, self._clock.now(), actor, job.settings.group_id, job.id, run_id, details
        )
        insert_event(connection, new)

    def _checked_addresses(self, connection: Connection, job: Job, wanted: Sequence[str]) -> tuple[str, ...]:
        if not wanted:
            return ()
        group = get_group(connection, self._zone, job.settings.group_id)
        known = {} if group is None else self._known_addresses(connection, group)
        for address in wanted:
            if _normal(address) not in known:
                names = ", ".join(sorted(known.values())) or "none"
                raise InvalidFieldError("addresses", f"{address[:255]} is not an address of the job's group ({names})")
        return tuple(dict.fromkeys(known[_normal(address)] for address in wanted))

    def _known_addresses(self, connection: Connection, group: Group) -> dict[str, str]:
        """The group's addresses as they are stored, by their normal form."""
        addresses = group.addresses
        if group.address_type is AddressType.REGISTERED:
            since_ms = self._database.now_ms() - LIVE_FOR_MS
            addresses = tuple(each.address for each in list_registrations(connection, [group.app_name], since_ms))
        return {_normal(address): address for address in addresses}


def _normal(address: str) -> str:
    return address.strip().rstrip("/")
