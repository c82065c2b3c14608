"""Looking at jobs."""

from collections.abc import Mapping, Sequence

from jobwheel.admin.domain.event import Event
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.job import Job, JobActivity
from jobwheel.admin.services.child_jobs import events_as_seen, jobs_as_seen
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import list_job_events
from jobwheel.admin.store.job_activity import load_activity
from jobwheel.admin.store.jobs import JobFilter, get_job, list_jobs
from jobwheel.admin.store.zone import InstallationZone


class JobReading(Scoped):
    """What jobs are and do. Children in groups that do not exist here are left out."""

    def __init__(self, database: Database, zone: InstallationZone) -> None:
        self._database = database
        self._zone = zone

    async def get(self, job_id: JobId) -> Job:
        """A job.

        Raises:
            NotFoundError: there is none of this id.
        """
        job = await self._database.read(get_job, self._zone, job_id)
        if job is None or self.hides(job.settings.group_id):
            raise NotFoundError("job", job_id)
        return await self._as_seen(job)

    async def page(self, wanted: JobFilter, after_id: int, limit: int) -> Sequence[Job]:
        """Jobs by ascending id."""
        found = await self._database.read(list_jobs, self._zone, wanted, after_id, limit)
        return found if self.group_ids is None else await self._database.read(jobs_as_seen, found, self.group_ids)

    async def activity(self, job_ids: Sequence[JobId]) -> Mapping[JobId, JobActivity]:
        """What these jobs are doing; of those that are gone nothing."""
        return await self._database.read(load_activity, job_ids) if job_ids else {}

    async def events(self, job_id: JobId, before_id: int | None, limit: int) -> Sequence[Event]:
        """A job's events, newest first; those of a deleted job too.

        Raises:
            NotFoundError: there is no job of this id and never was.
        """
        events = await self._database.read(list_job_events, job_id, before_id, limit)
        if not events and before_id is None:
            await self.get(job_id)
        return events if self.group_ids is None else await self._database.read(events_as_seen, events, self.group_ids)

    async def _as_seen(self, job: Job) -> Job:
        if self.group_ids is None or not job.settings.child_job_ids:
            return job
        return (await self._database.read(jobs_as_seen, [job], self.group_ids))[0]
