"""Making, changing, starting, stopping and deleting jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jobwheel.admin.domain.event import Event, EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import Job, JobSettings
from jobwheel.admin.domain.script import NewScript
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError, TakenError, VersionConflictError
from jobwheel.admin.services.job_events import changes_event, missed_event, removed_event, settings_details
from jobwheel.admin.services.job_input import check_whole, read_changes, read_settings
from jobwheel.admin.services.job_plan import (
    Moment,
    changes_schedule,
    edited_settings,
    missed_by,
    needs_new_plan,
    replanned,
    schedule_of,
    started,
)
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scripts import SCRIPT_FIELDS, first_script, insert_first_script
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_events, list_job_events
from jobwheel.admin.store.groups import get_group
from jobwheel.admin.store.jobs import (
    JobFilter,
    delete_job,
    find_job_by_key,
    get_job,
    insert_job,
    list_jobs,
    update_job,
)
from jobwheel.admin.store.run_list import last_planned
from jobwheel.admin.store.runs import has_open_runs, remove_pending, remove_planned
from jobwheel.admin.store.settings_table import DELETED_JOB_PREFIX, write_setting
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock


class Jobs:
    """The use cases of jobs. Each change is one transaction under the job's row lock, with its event.

    `actor` is the name of who asks; `given` holds fields of the API whose JSON types have been checked.
    """

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, scheduler: Scheduler) -> None:
        self._database = database
        self._clock = clock
        self._zone = zone
        self._scheduler = scheduler

    async def get(self, job_id: JobId) -> Job:
        """A job.

        Raises:
            NotFoundError: there is none of this id.
        """
        job = await self._database.read(get_job, self._zone, job_id)
        if job is None:
            raise NotFoundError("job", job_id)
        return job

    async def page(self, wanted: JobFilter, after_id: int, limit: int) -> Sequence[Job]:
        """Jobs by ascending id."""
        return await self._database.read(list_jobs, self._zone, wanted, after_id, limit)

    async def events(self, job_id: JobId, before_id: int | None, limit: int) -> Sequence[Event]:
        """A job's events, newest first; those of a deleted job too.

        Raises:
            NotFoundError: there is no job of this id and never was.
        """
        events = await self._database.read(list_job_events, job_id, before_id, limit)
        if not events and before_id is None:
            await self.get(job_id)
        return events

    async def create(self, given: Mapping[str, Any], *, running: bool, actor: str) -> Job:
        """Make a job, stopped or running.

        Raises:
            InvalidFieldError, NotSupportedYetError, ScheduleError: a field is wrong.
            TakenError: the group has a job of this key.
            NeverFiresError: it cannot be running.
        """
        settings = read_settings({name: value for name, value in given.items() if name not in SCRIPT_FIELDS})
        script = first_script(given, settings.glue_type)
        schedule_of(settings, self._zone.name)
        job = await self._database.write(self._create, settings, script, running, actor)
        if running:
            self._scheduler.wake()
        return job

    async def update(self, job_id: JobId, given: Mapping[str, Any], *, version: int | None, actor: str) -> Job:
        """Change the fields that are given; with `version` only if nobody changed the job since it was read.

        Raises:
            NotFoundError: there is no such job.
            InvalidFieldError, NotSupportedYetError, ScheduleError: a field is wrong.
            TakenError: the group has a job of this key.
            VersionConflictError: somebody changed it.
            NeverFiresError: a running job would never run again.
        """
        changes = read_changes(given)
        job = await self._database.write(self._update, job_id, changes, version, actor)
        self._scheduler.wake()
        return job

    async def delete(self, job_id: JobId, *, actor: str) -> None:
        """Remove a job and its pending runs at once; its other run rows go afterwards, its events stay.

        Raises:
            NotFoundError: there is no such job.
        """
        await self._database.write(self._delete, job_id, actor)

    async def start(self, job_id: JobId, *, actor: str) -> Job:
        """Let a job run by its schedule from now on. A running one is left alone.

        Raises:
            NotFoundError: there is no such job.
            NeverFiresError: its schedule has no next time.
        """
        job = await self._database.write(self._start, job_id, actor)
        self._scheduler.wake()
        return job

    async def stop(self, job_id: JobId, *, actor: str) -> Job:
        """Let a job run by its schedule no more: what was planned after now is taken back.

        Raises:
            NotFoundError: there is no such job.
        """
        return await self._database.write(self._stop, job_id, actor)

    def _create(
        self,
        connection: Connection,
        settings: JobSettings,
        script: NewScript | None,
        running: bool,  # noqa: FBT001 - passed through `write`
        actor: str,
    ) -> Job:
        now_ms = self._clock.now()
        self._check_references(connection, settings, None)
        job = Job(
            JobId(0),
            settings,
            running=False,
            last_ms=None,
            next_ms=None,
            created_ms=now_ms,
            updated_ms=now_ms,
            version=0,
        )
        if running:
            job = started(job, self._zone.name, Moment(now_ms))
        job = replace(job, id=insert_job(connection, self._zone, job))
        if script is not None:
            insert_first_script(connection, self._zone, job, script)
        details = {**settings_details(job.settings), "running": running}
        insert_events(connection, [self._event(EventKind.JOB_CREATED, job, actor, now_ms, details)])
        return job

    def _update(
        self, connection: Connection, job_id: JobId, changes: dict[str, object], version: int | None, actor: str
    ) -> Job:
        old = self._locked(connection, job_id)
        if version is not None and version != old.version:
            raise VersionConflictError("job", version, old.version)
        now_ms = self._clock.now()
        settings = edited_settings(old.settings, changes, now_ms)
        if settings == old.settings:
            return old
        self._check_edit(connection, settings, old)
        job, events = self._replan(connection, old, settings, actor, now_ms)
        job = self._save(connection, job, now_ms)
        insert_events(connection, [changes_event(old, job, actor, now_ms), *events])
        return job

    def _replan(
        self, connection: Connection, old: Job, settings: JobSettings, actor: str, now_ms: int
    ) -> tuple[Job, list[NewEvent]]:
        if not needs_new_plan(old.settings, settings):
            return replace(old, settings=settings), []
        kept, moment, events = self._take_back(connection, old, now_ms, actor, "edit")
        if changes_schedule(old.settings, settings):
            events += missed_event(old, missed_by(old, self._zone.name, now_ms), actor, now_ms, "edit")
        return replanned(kept, settings, self._zone.name, moment), events

    def _delete(self, connection: Connection, job_id: JobId, actor: str) -> None:
        job = self._locked(connection, job_id)
        now_ms = self._clock.now()
        removed = remove_pending(connection, job_id)
        details = {**settings_details(job.settings), "running": job.running}
        events = [self._event(EventKind.JOB_DELETED, job, actor, now_ms, details)]
        insert_events(connection, events + removed_event(job, removed, actor, now_ms, "delete"))
        delete_job(connection, job_id)
        write_setting(connection, f"{DELETED_JOB_PREFIX}{job_id}", str(now_ms))

    def _start(self, connection: Connection, job_id: JobId, actor: str) -> Job:
        old = self._locked(connection, job_id)
        if old.running:
            return old
        now_ms = self._clock.now()
        # A job that stopped by itself may have its last run pending: then that instant is not planned twice.
        moment = Moment(now_ms, (), old.last_ms, has_open_runs(connection, job_id))
        job = self._save(connection, started(old, self._zone.name, moment), now_ms)
        insert_events(connection, [self._event(EventKind.JOB_STARTED, job, actor, now_ms)])
        return job

    def _stop(self, connection: Connection, job_id: JobId, actor: str) -> Job:
        old = self._locked(connection, job_id)
        now_ms = self._clock.now()
        kept, moment, events = self._take_back(connection, old, now_ms, actor, "stop")
        if not old.running and not moment.removed_ms:
            return old
        events += missed_event(old, missed_by(old, self._zone.name, now_ms), actor, now_ms, "stop")
        job = self._save(connection, replace(kept, running=False, next_ms=None), now_ms)
        insert_events(connection, [self._event(EventKind.JOB_STOPPED, job, actor, now_ms), *events])
        return job

    def _take_back(
        self, connection: Connection, job: Job, now_ms: int, actor: str, cause: str
    ) -> tuple[Job, Moment, list[NewEvent]]:
        """Remove the pending schedule-caused runs planned after now; the last time is one with a run again."""
        removed = remove_planned(connection, job.id, now_ms)
        last_ms = last_planned(connection, job.id) if removed else job.last_ms
        moment = Moment(now_ms, tuple(each.planned_ms for each in removed), last_ms, has_open_runs(connection, job.id))
        return replace(job, last_ms=last_ms), moment, removed_event(job, removed, actor, now_ms, cause)

    def _check_edit(self, connection: Connection, settings: JobSettings, old: Job) -> None:
        if settings.glue_type is not old.settings.glue_type:
            raise InvalidFieldError(
                "glue_type", f"is {old.settings.glue_type} since the job was made; make another job"
            )
        check_whole(settings)
        schedule_of(settings, self._zone.name)
        self._check_references(connection, settings, old)

    def _check_references(self, connection: Connection, settings: JobSettings, old: Job | None) -> None:
        # Held, so that the group cannot be deleted before the job is in it.
        if get_group(connection, self._zone, settings.group_id, lock=True) is None:
            raise NotFoundError("group", settings.group_id)
        if settings.key is None:
            return
        holder = find_job_by_key(connection, settings.group_id, settings.key)
        if holder is not None and (old is None or holder != old.id):
            raise TakenError("key", settings.key, f"job {holder} of the same group")

    def _locked(self, connection: Connection, job_id: JobId) -> Job:
        job = get_job(connection, self._zone, job_id, lock=True)
        if job is None:
            raise NotFoundError("job", job_id)
        return job

    def _save(self, connection: Connection, job: Job, now_ms: int) -> Job:
        job = replace(job, updated_ms=now_ms, version=job.version + 1)
        update_job(connection, self._zone, job)
        return job

    def _event(
        self, kind: EventKind, job: Job, actor: str, at_ms: int, details: Mapping[str, object] | None = None
    ) -> NewEvent:
        return NewEvent(kind, at_ms, actor, job.settings.group_id, job.id, None, details or {})
