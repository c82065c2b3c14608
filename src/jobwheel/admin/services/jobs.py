"""Making, changing, starting, stopping and deleting jobs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from jobwheel.admin.domain.event import EventKind, NewEvent
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import Job, JobSettings
from jobwheel.admin.domain.script import NewScript
from jobwheel.admin.services.child_jobs import with_hidden
from jobwheel.admin.services.errors import NotFoundError, VersionConflictError
from jobwheel.admin.services.job_checks import check_edit, check_new
from jobwheel.admin.services.job_events import changes_event, missed_event, removed_event, settings_details
from jobwheel.admin.services.job_input import read_changes, read_settings
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
from jobwheel.admin.services.job_reading import JobReading
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scripts import (
    SCRIPT_FIELDS,
    changed_script,
    first_script,
    insert_first_script,
    write_script,
)
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_events
from jobwheel.admin.store.job_children import lock_children
from jobwheel.admin.store.jobs import (
    delete_job,
    get_job,
    insert_job,
    update_job,
)
from jobwheel.admin.store.run_causes import last_planned
from jobwheel.admin.store.runs import has_open_runs, remove_pending, remove_planned
from jobwheel.admin.store.settings_table import DELETED_JOB_PREFIX, write_setting
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock


class Jobs(JobReading):
    """The use cases of jobs. Each change is one transaction under the job's row lock, with its event.

    `actor` is the name of who asks; `given` holds fields of the API whose JSON types have been checked.
    """

    def __init__(self, database: Database, clock: Clock, zone: InstallationZone, scheduler: Scheduler) -> None:
        super().__init__(database, zone)
        self._clock = clock
        self._scheduler = scheduler

    async def create(self, given: Mapping[str, Any], *, running: bool, actor: str) -> Job:
        """Make a job, stopped or running.

        Raises:
            InvalidFieldError, ScheduleError: a field is wrong.
            TakenError: the group has a job of this key.
            NeverFiresError: it cannot be running.
        """
        settings = read_settings({name: value for name, value in given.items() if name not in SCRIPT_FIELDS})
        script = first_script(given, settings.glue_type)
        schedule_of(settings, self._zone.name)
        job = await self._database.write(self.create_in, settings, script, running, actor)
        if running:
            self._scheduler.wake()
        return job

    async def update(self, job_id: JobId, given: Mapping[str, Any], *, version: int | None, actor: str) -> Job:
        """Change the fields that are given; with `version` only if nobody changed the job since it was read.

        `glue_source` with `glue_remark` makes a script's next version.

        Raises:
            NotFoundError: there is no such job.
            InvalidFieldError, ScheduleError: a field is wrong.
            TakenError: the group has a job of this key.
            VersionConflictError: somebody changed it.
            NeverFiresError: a running job would never run again.
        """
        script = changed_script(given)
        changes = read_changes({name: value for name, value in given.items() if name not in SCRIPT_FIELDS})
        job = await self._database.write(self.update_in, job_id, changes, version, actor, script)
        self._scheduler.wake()
        return await self._as_seen(job)

    async def delete(self, job_id: JobId, *, actor: str) -> None:
        """Remove a job and its pending runs at once; its other run rows go afterwards, its events stay.

        Raises:
            NotFoundError: there is no such job.
        """
        await self._database.write(self.delete_in, job_id, actor)

    async def start(self, job_id: JobId, *, actor: str) -> Job:
        """Let a job run by its schedule from now on. A running one is left alone.

        Raises:
            NotFoundError: there is no such job.
            NeverFiresError: its schedule has no next time.
        """
        job = await self._database.write(self.start_in, job_id, actor)
        self._scheduler.wake()
        return await self._as_seen(job)

    async def stop(self, job_id: JobId, *, actor: str) -> Job:
        """Let a job run by its schedule no more: what was planned after now is taken back.

        Raises:
            NotFoundError: there is no such job.
        """
        return await self._as_seen(await self._database.write(self.stop_in, job_id, actor))

    def create_in(
        self,
        connection: Connection,
        settings: JobSettings,
        script: NewScript | None,
        running: bool,  # noqa: FBT001 - passed through `write`
        actor: str,
    ) -> Job:
        """Make a job in the caller's transaction; see `create`. Who commits wakes the scheduler."""
        now_ms = self._clock.now()
        if settings.child_job_ids:
            lock_children(connection)
        check_new(connection, self._zone, settings, self.group_ids)
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

    def update_in(
        self,
        connection: Connection,
        job_id: JobId,
        changes: dict[str, object],
        version: int | None,
        actor: str,
        script: NewScript | None = None,
    ) -> Job:
        """Change a job in the caller's transaction; see `update`. Who commits wakes the scheduler."""
        if changes.get("child_job_ids"):
            lock_children(connection)
        old = self._locked(connection, job_id)
        if version is not None and version != old.version:
            raise VersionConflictError("job", version, old.version)
        if self.group_ids is not None and "child_job_ids" in changes:
            given = cast("tuple[JobId, ...]", changes["child_job_ids"])
            children = with_hidden(connection, old.settings.child_job_ids, given, self.group_ids)
            changes = {**changes, "child_job_ids": children}
        now_ms = self._clock.now()
        settings = edited_settings(old.settings, changes, now_ms)
        job, events = old, list[NewEvent]()
        if settings != old.settings:
            check_edit(connection, self._zone, settings, old, self.group_ids)
            job, events = self._replan(connection, old, settings, actor, now_ms)
            events.insert(0, changes_event(old, job, actor, now_ms))
        if script is not None:
            events.append(write_script(connection, self._zone, replace(job, updated_ms=now_ms), script, actor))
        if events:
            job = self._save(connection, job, now_ms)
            insert_events(connection, events)
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

    def delete_in(self, connection: Connection, job_id: JobId, actor: str) -> None:
        """Remove a job in the caller's transaction; see `delete`."""
        job = self._locked(connection, job_id)
        now_ms = self._clock.now()
        removed = remove_pending(connection, job_id)
        details = {**settings_details(job.settings), "running": job.running}
        events = [self._event(EventKind.JOB_DELETED, job, actor, now_ms, details)]
        insert_events(connection, events + removed_event(job, removed, actor, now_ms, "delete"))
        delete_job(connection, job_id)
        write_setting(connection, f"{DELETED_JOB_PREFIX}{job_id}", str(now_ms))

    def start_in(self, connection: Connection, job_id: JobId, actor: str) -> Job:
        """Start a job in the caller's transaction; see `start`. Who commits wakes the scheduler."""
        old = self._locked(connection, job_id)
        if old.running:
            return old
        now_ms = self._clock.now()
        # A job that stopped by itself may have its last run pending: then that instant is not planned twice.
        moment = Moment(now_ms, (), old.last_ms, has_open_runs(connection, job_id))
        job = self._save(connection, started(old, self._zone.name, moment), now_ms)
        insert_events(connection, [self._event(EventKind.JOB_STARTED, job, actor, now_ms)])
        return job

    def stop_in(self, connection: Connection, job_id: JobId, actor: str) -> Job:
        """Stop a job in the caller's transaction; see `stop`."""
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

    def _locked(self, connection: Connection, job_id: JobId) -> Job:
        job = get_job(connection, self._zone, job_id, lock=True)
        if job is None or self.hides(job.settings.group_id):
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
