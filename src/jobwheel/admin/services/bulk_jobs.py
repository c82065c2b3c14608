"""One change for many jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.scoped import Scoped
from jobwheel.admin.services.triggers import Trigger, Triggers
from jobwheel.admin.store.database import is_outage
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.kernel.errors import JobwheelError

MOST_JOBS: Final = 1000
"""How many jobs may be changed at once."""


class BulkAction(StrEnum):
    """What is done with each of the jobs."""

    START = "start"
    STOP = "stop"
    RUN = "run"


class BulkResult(StrEnum):
    """What became of a job."""

    DONE = "done"
    UNCHANGED = "unchanged"
    WOULD = "would"
    """It was only asked what would be done."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class BulkWish:
    """What to do: `parameter` is for runs, None = each job's own; with `dry_run` nothing is done.

    `trigger_type` is that of the runs.
    """

    action: BulkAction
    parameter: str | None = None
    dry_run: bool = False
    trigger_type: TriggerType = TriggerType.MANUAL


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of one job; `name` is empty if there is none of this id."""

    job_id: JobId
    name: str
    result: BulkResult
    run_id: RunId | None = None
    error: JobwheelError | None = None


class BulkJobs(Scoped):
    """The use case. Each job is changed in a transaction of its own: one that refuses holds up no other."""

    def __init__(self, jobs: Jobs, triggers: Triggers) -> None:
        self._jobs = jobs
        self._triggers = triggers

    async def change(
        self, selection: Sequence[JobId] | JobFilter, wish: BulkWish, *, actor: str
    ) -> Sequence[JobOutcome]:
        """Start, stop or run these jobs, in the order of their ids; jobs that are gone are refused.

        Raises:
            InvalidFieldError: there are too many of them.
        """
        outcomes = []
        for job_id, job in await self._chosen(selection):
            if job is None:
                error = NotFoundError("job", job_id)
                outcomes.append(JobOutcome(job_id, "", BulkResult.REFUSED, error=error))
            else:
                outcomes.append(await self._one(job, wish, actor))
        return outcomes

    async def _chosen(self, selection: Sequence[JobId] | JobFilter) -> list[tuple[JobId, Job | None]]:
        if isinstance(selection, JobFilter):
            found = await self._own_jobs.page(replace(selection, group_ids=self.group_ids), 0, MOST_JOBS + 1)
            chosen: list[tuple[JobId, Job | None]] = [(job.id, job) for job in found]
        else:
            chosen = [(job_id, await self._get(job_id)) for job_id in sorted(set(selection))]
        if len(chosen) > MOST_JOBS:
            raise InvalidFieldError("ids", f"these are more than {MOST_JOBS} jobs; choose fewer at a time")
        return chosen

    @property
    def _own_jobs(self) -> Jobs:
        return self._jobs.within(self.group_ids)

    async def _get(self, job_id: JobId) -> Job | None:
        try:
            return await self._own_jobs.get(job_id)
        except NotFoundError:
            return None

    async def _one(self, job: Job, wish: BulkWish, actor: str) -> JobOutcome:
        wanted = {BulkAction.START: True, BulkAction.STOP: False}.get(wish.action)
        if wish.dry_run:
            result = BulkResult.UNCHANGED if wanted is job.running else BulkResult.WOULD
            return JobOutcome(job.id, job.settings.name, result)
        try:
            return await self._do(job, wish, actor)
        except JobwheelError as error:
            if is_outage(error):
                raise
            return JobOutcome(job.id, job.settings.name, BulkResult.REFUSED, error=error)

    async def _do(self, job: Job, wish: BulkWish, actor: str) -> JobOutcome:
        if wish.action is BulkAction.RUN:
            wanted = Trigger(wish.trigger_type, wish.parameter)
            run = await self._triggers.within(self.group_ids).trigger(job.id, wanted, actor=actor)
            return JobOutcome(job.id, job.settings.name, BulkResult.DONE, run.id)
        change = self._own_jobs.start if wish.action is BulkAction.START else self._own_jobs.stop
        after = await change(job.id, actor=actor)
        result = BulkResult.UNCHANGED if after.version == job.version else BulkResult.DONE
        return JobOutcome(job.id, job.settings.name, result)
