"""`/api/v1/jobs/bulk`: one change for many jobs."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.job_models import Status
from jobwheel.admin.api.models import Body, Id, SearchText, one_of
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.services.bulk_jobs import MOST_JOBS, BulkAction, BulkJobs, BulkResult, BulkWish, JobOutcome
from jobwheel.admin.services.errors import InvalidFieldError
from jobwheel.admin.services.job_input import read_choice
from jobwheel.admin.store.jobs import JobFilter


class BulkBody(Body):
    """What to do with which jobs: those of `ids`, or those that the other fields choose, or `all`.

    `name` is a part of the name, `tag` one of the tags. `parameter` is for `run`; null = each job's own.
    """

    action: Annotated[str, one_of(BulkAction)]
    ids: list[Id] = Field(default_factory=list, max_length=MOST_JOBS)
    group_id: Id | None = None
    tag: SearchText | None = None
    name: SearchText | None = None
    handler: SearchText | None = None
    status: Status | None = None
    all: bool = False
    parameter: str | None = None
    dry_run: bool = False

    def selection(self) -> list[JobId] | JobFilter:
        """Which jobs."""
        chosen = JobFilter(
            group_id=None if self.group_id is None else GroupId(self.group_id),
            running=None if self.status is None else self.status == "running",
            handler=self.handler,
            name=self.name,
            tag=self.tag,
        )
        ways = [bool(self.ids), chosen != JobFilter(), self.all]
        if sum(ways) != 1:
            raise InvalidFieldError("ids", "choose jobs by ids, or by group_id, tag, name, handler and status, or all")
        return [JobId(each) for each in self.ids] if self.ids else chosen

    def wish(self, caller: Caller) -> BulkWish:
        """What to do for somebody."""
        action = read_choice("action", self.action, BulkAction)
        if self.parameter is not None and action is not BulkAction.RUN:
            raise InvalidFieldError("parameter", f"has a meaning for run alone, not for {action}")
        return BulkWish(action, self.parameter, self.dry_run, caller.trigger_type)


class JobErrorModel(BaseModel):
    """Why a job was refused."""

    code: str
    message: str
    field: str | None


class JobOutcomeModel(BaseModel):
    """What became of a job; `would` and `unchanged` if it was only asked."""

    job_id: int
    name: str
    result: str = one_of(BulkResult)
    run_id: int | None
    error: JobErrorModel | None


class BulkModel(BaseModel):
    """What became of the jobs, in the order of their ids."""

    jobs: list[JobOutcomeModel]


def bulk_router(bulk: BulkJobs) -> APIRouter:
    """The route of many jobs."""
    router = APIRouter(prefix="/jobs", tags=["jobs"])

    @router.post("/bulk")
    async def change_jobs(body: BulkBody, caller: WhoAsks) -> BulkModel:
        own = bulk.within(caller.group_ids)
        outcomes = await own.change(body.selection(), body.wish(caller), actor=caller.name)
        return BulkModel(jobs=[_model(each) for each in outcomes])

    return router


def _model(outcome: JobOutcome) -> JobOutcomeModel:
    error = outcome.error
    return JobOutcomeModel(
        job_id=outcome.job_id,
        name=outcome.name,
        result=outcome.result,
        run_id=outcome.run_id,
        error=None if error is None else JobErrorModel(code=error.code, message=error.message, field=error.field),
    )
