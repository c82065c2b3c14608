"""Jobs by app name and key: one at a time, or as a document that is planned, applied and exported."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from jobwheel.admin.domain.group import Group
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import Job, JobAddress
from jobwheel.admin.domain.policies import GlueType
from jobwheel.admin.services.child_jobs import jobs_as_seen
from jobwheel.admin.services.errors import (
    AmbiguousGroupError,
    InvalidFieldError,
    KeylessJobsError,
    NotFoundError,
    TakenError,
)
from jobwheel.admin.services.job_application import Application
from jobwheel.admin.services.job_channels import ChannelNames
from jobwheel.admin.services.job_document_tools import Asker, Scope, Tools
from jobwheel.admin.services.job_wishes import (
    MOST_JOBS,
    Action,
    Changes,
    Export,
    JobChange,
    JobDocument,
    JobState,
    JobWish,
    Names,
)
from jobwheel.admin.services.scheduler import Scheduler
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.groups import find_groups, list_groups
from jobwheel.admin.store.job_children import jobs_elsewhere
from jobwheel.admin.store.job_keys import job_names
from jobwheel.admin.store.jobs import JobFilter, find_job_by_key, get_job, list_jobs
from jobwheel.admin.store.scripts import get_script

_PAGE = 500
_ATTEMPTS = 5
_Work = Callable[[Connection, JobDocument, str | None, Asker], Changes]


class JobDocuments(Scoped):
    """The use cases of jobs that other systems keep. `actor` is the name of who asks.

    To somebody to whom some groups alone exist, others are not there, and he makes none.
    """

    def __init__(self, database: Database, scheduler: Scheduler, tools: Tools) -> None:
        self._database = database
        self._scheduler = scheduler
        self._tools = tools

    async def find(self, address: JobAddress) -> Job:
        """A job by app name and key.

        Raises:
            NotFoundError: there is no such group, or none of its jobs has this key.
            AmbiguousGroupError: two groups have the app name.
        """
        return await self._database.read(self._find, address)

    async def put(self, wish: JobWish, *, actor: str, may_script: bool = True) -> Changes:
        """Make or change one job, the only one of the answer; where nothing differs nothing is written.

        Raises:
            ForbiddenError: it would make or change a script, and not `may_script`.
            NotFoundError, AmbiguousGroupError: as for `find`, of the group alone.
            JobwheelError: as for `Jobs.create` and `Jobs.update`.
        """
        changes = await self._written(self._put, JobDocument((), (wish,)), None, Asker(actor, may_script))
        (change,) = changes.jobs
        if change.action is not Action.UNCHANGED:
            self._scheduler.wake()
        return changes

    async def plan(self, document: JobDocument, *, actor: str) -> Changes:
        """What `apply` would do; nothing is changed.

        Raises:
            JobwheelError: as for `apply`.
        """
        _check(document)
        try:
            await self._database.write(self._try_out, document, actor)
        except _TriedOutError as tried:
            return tried.changes
        raise AssertionError("a plan is never committed")

    async def apply(
        self, document: JobDocument, *, fingerprint: str | None, actor: str, may_script: bool = True
    ) -> Changes:
        """Make everything as the document says, or nothing.

        Raises:
            PlanChangedError: the plan of this fingerprint is not what would be done now.
            ForbiddenError: a group is not there, and who asks may not make it; or a script would be made or changed,
                and not `may_script`.
            JobwheelError: a job cannot be as it is wanted; names it, and the field.
        """
        _check(document)
        changes = await self._written(self._apply, document, fingerprint, Asker(actor, may_script))
        if changes.new_groups:
            await self._tools.groups.make_known()
        if any(each.action in (Action.CREATE, Action.CHANGE) for each in changes.jobs):
            self._scheduler.wake()
        return changes

    async def export(self, app_names: Sequence[str]) -> Export:
        """The groups of these app names (of none: all groups) and their jobs.

        Raises:
            NotFoundError: there is no group of an app name.
            AmbiguousGroupError: two groups have one.
            KeylessJobsError: jobs have no key; names them.
        """
        return await self._database.read(self._export, app_names)

    def _find(self, connection: Connection, address: JobAddress) -> Job:
        group = self._group(connection, address.app_name)
        job_id = find_job_by_key(connection, group.id, address.key)
        job = None if job_id is None else get_job(connection, self._tools.zone, job_id)
        if job is None:
            raise NotFoundError("job", address)
        return jobs_as_seen(connection, [job], self.group_ids)[0]

    async def _written(self, work: _Work, document: JobDocument, fingerprint: str | None, asker: Asker) -> Changes:
        for attempt in range(_ATTEMPTS):
            try:
                return await self._database.write(work, document, fingerprint, asker)
            except TakenError:
                # Somebody made a group or a job since it was looked for: then it is there, and changed.
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _put(self, connection: Connection, document: JobDocument, fingerprint: str | None, asker: Asker) -> Changes:
        changes = Application(connection, self._own_tools, document, asker, scope=Scope.ALONE).run(fingerprint)
        return replace(changes, jobs=[self._as_seen(connection, each) for each in changes.jobs])

    def _as_seen(self, connection: Connection, change: JobChange) -> JobChange:
        if change.after is None:
            return change
        (job,) = jobs_as_seen(connection, [change.after.job], self.group_ids)
        return replace(change, after=replace(change.after, job=job))

    @property
    def _own_tools(self) -> Tools:
        jobs, scripts = self._tools.jobs.within(self.group_ids), self._tools.scripts.within(self.group_ids)
        return replace(self._tools, jobs=jobs, scripts=scripts)

    def _apply(self, connection: Connection, document: JobDocument, fingerprint: str | None, asker: Asker) -> Changes:
        return Application(connection, self._own_tools, document, asker, scope=Scope.WHOLE).run(fingerprint)

    def _try_out(self, connection: Connection, document: JobDocument, actor: str) -> None:
        application = Application(connection, self._own_tools, document, Asker(actor), scope=Scope.TRIAL)
        raise _TriedOutError(application.run(None))

    def _export(self, connection: Connection, app_names: Sequence[str]) -> Export:
        groups = [self._group(connection, each) for each in dict.fromkeys(app_names)] or self._all_groups(connection)
        jobs = [job for group in groups for job in self._jobs_of(connection, group.id)]
        children = {child for job in jobs for child in job.settings.child_job_ids}
        children -= jobs_elsewhere(connection, children, self.group_ids)
        names = job_names(connection, {*children, *(job.id for job in jobs)})
        keyless = {job_id: each.name for job_id, each in names.items() if each.address is None}
        if keyless:
            raise KeylessJobsError(keyless)
        addresses = {job_id: each.address for job_id, each in names.items() if each.address is not None}
        # Jobs whose group is gone are in no file either.
        states = [(addresses[job.id], self._state(connection, job)) for job in jobs if job.id in addresses]
        return Export(groups, states, Names(addresses, ChannelNames(connection).by_id))

    def _group(self, connection: Connection, app_name: str) -> Group:
        found = [each for each in find_groups(connection, self._tools.zone, app_name) if not self.hides(each.id)]
        if not found:
            raise NotFoundError("group", app_name)
        if len(found) > 1:
            raise AmbiguousGroupError(app_name)
        return found[0]

    def _all_groups(self, connection: Connection) -> list[Group]:
        groups: list[Group] = []
        page = list_groups(connection, self._tools.zone, 0, _PAGE, self.group_ids)
        while page:
            groups += page
            page = list_groups(connection, self._tools.zone, page[-1].id, _PAGE, self.group_ids)
        for app_name, count in Counter(each.app_name for each in groups).items():
            if count > 1:
                raise AmbiguousGroupError(app_name)
        return groups

    def _jobs_of(self, connection: Connection, group_id: GroupId) -> list[Job]:
        jobs: list[Job] = []
        page = list_jobs(connection, self._tools.zone, JobFilter(group_id), 0, _PAGE)
        while page:
            jobs += page
            page = list_jobs(connection, self._tools.zone, JobFilter(group_id), JobId(page[-1].id), _PAGE)
        return jobs

    def _state(self, connection: Connection, job: Job) -> JobState:
        is_script = job.settings.glue_type is not GlueType.BEAN
        return JobState(job, get_script(connection, self._tools.zone, job.id) if is_script else None)


class _TriedOutError(Exception):
    """Ends a transaction that shows what would be done, so that it is rolled back."""

    def __init__(self, changes: Changes) -> None:
        super().__init__()
        self.changes = changes


def _check(document: JobDocument) -> None:
    if len(document.jobs) > MOST_JOBS:
        problem = f"has {len(document.jobs)} jobs, at most {MOST_JOBS} are allowed; give each group a document"
        raise InvalidFieldError("jobs", problem)
    seen: dict[JobAddress, int] = {}
    for at, wish in enumerate(document.jobs):
        if wish.address in seen:
            raise InvalidFieldError(f"jobs[{at}].key", f"{wish.address} is jobs[{seen[wish.address]}] already")
        seen[wish.address] = at
