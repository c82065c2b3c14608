"""`/api/v1/jobs/{job_id}/backfill`: runs for times that are past."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.models import Body, PathId
from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.services.backfills import Backfill, Backfills, BackfillWish


class BackfillBody(Body):
    """The planned times from `from` on and before `until`; the runs come due `interval_s` apart, 0 = all at once.

    Instants in the job's pause windows count with `in_pauses` alone; those that have a run already are left out with
    `only_missing`. `parameter` null = the job's own. With `dry_run` nothing is made.
    """

    from_: str = Field(alias="from")
    until: str
    interval_s: float = 1.0
    parameter: str | None = None
    in_pauses: bool = False
    only_missing: bool = False
    dry_run: bool = False

    def wish(self) -> BackfillWish:
        """The same for the use case."""
        return BackfillWish(
            from_text("from", self.from_),
            from_text("until", self.until),
            interval_s=self.interval_s,
            parameter=self.parameter,
            in_pauses=self.in_pauses,
            only_missing=self.only_missing,
            dry_run=self.dry_run,
        )


class BackfillModel(BaseModel):
    """How many runs were made (would be, with `dry_run`), for which planned times, and when the last comes due.

    `skipped` planned times had a run already.
    """

    count: int
    skipped: int
    first_planned_at: str | None
    last_planned_at: str | None
    due_until: str | None


class RemovedModel(BaseModel):
    """How many runs were removed."""

    removed: int


def backfill_router(backfills: Backfills) -> APIRouter:
    """The routes of backfills."""
    router = APIRouter(prefix="/jobs/{job_id}/backfill", tags=["jobs"])

    @router.post("")
    async def backfill_job(job_id: PathId, body: BackfillBody, caller: WhoAsks) -> BackfillModel:
        own = backfills.within(caller.group_ids)
        return _model(await own.make(JobId(job_id), body.wish(), actor=caller.name))

    @router.delete("")
    async def cancel_backfill(job_id: PathId, caller: WhoAsks) -> RemovedModel:
        own = backfills.within(caller.group_ids)
        return RemovedModel(removed=await own.cancel(JobId(job_id), actor=caller.name))

    return router


def _model(backfill: Backfill) -> BackfillModel:
    return BackfillModel(
        count=backfill.count,
        skipped=backfill.skipped,
        first_planned_at=to_text(backfill.first_ms),
        last_planned_at=to_text(backfill.last_ms),
        due_until=to_text(backfill.due_until_ms),
    )
