"""`/api/v1/runs/clean-up`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark
from pydantic import BaseModel

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body, Id, Page, PageQuery, PathId, one_of, page_of
from jobwheel.admin.domain.clean_up import CleanUp, CleanUpWhich
from jobwheel.admin.domain.ids import CleanUpId, GroupId, JobId
from jobwheel.admin.services.clean_ups import CleanUps, CleanUpWish


class CleanUpBody(Body):
    """Which runs go, of those that are done: of all jobs, of a group's, or of one job.

    Who may change some groups alone names one of them, or a job in one; of a job its runs in that group go.

    A month is one of the calendar; "but last" keeps the newest runs of those that are meant.
    """

    which: Annotated[str, one_of(CleanUpWhich)]
    group_id: Id | None = None
    job_id: Id | None = None


class CleanUpModel(BaseModel):
    """A clean-up: waiting, running, done or cancelled.

    About `about` runs are looked at (0 while it waits), `deleted` are gone; runs that are not done stay.
    """

    id: int
    state: str
    which: str
    group_id: int | None
    job_id: int | None
    about: int
    deleted: int
    asked_by: str
    created_at: str
    updated_at: str
    ended_at: str | None


def clean_up_router(clean_ups: CleanUps) -> APIRouter:
    """The routes of clean-ups."""
    router = APIRouter(prefix="/runs/clean-up", tags=["runs"])

    @router.post("", status_code=202)
    async def clean_up_runs(body: CleanUpBody, caller: WhoAsks) -> CleanUpModel:
        group_id = None if body.group_id is None else GroupId(body.group_id)
        job_id = None if body.job_id is None else JobId(body.job_id)
        wish = CleanUpWish(body.which, group_id, job_id)
        return _model(await clean_ups.within(caller.group_ids).ask(wish, actor=caller.name))

    @router.get("")
    async def list_clean_ups(query: Annotated[PageQuery, QueryMark()], caller: WhoAsks) -> Page[CleanUpModel]:
        found = await clean_ups.within(caller.group_ids).page(query.after, query.limit + 1)
        return page_of([_model(each) for each in found], [each.id for each in found], query.limit)

    @router.get("/{clean_up_id}")
    async def get_clean_up(clean_up_id: PathId, caller: WhoAsks) -> CleanUpModel:
        return _model(await clean_ups.within(caller.group_ids).get(CleanUpId(clean_up_id)))

    @router.post("/{clean_up_id}/cancel")
    async def cancel_clean_up(clean_up_id: PathId, caller: WhoAsks) -> CleanUpModel:
        own = clean_ups.within(caller.group_ids)
        return _model(await own.cancel(CleanUpId(clean_up_id), actor=caller.name))

    return router


def _model(clean_up: CleanUp) -> CleanUpModel:
    return CleanUpModel(
        id=clean_up.id,
        state=clean_up.state,
        which=clean_up.which,
        group_id=clean_up.group_id,
        job_id=clean_up.job_id,
        about=clean_up.about,
        deleted=clean_up.deleted,
        asked_by=clean_up.actor,
        created_at=to_text(clean_up.created_ms),
        updated_at=to_text(clean_up.updated_ms),
        ended_at=to_text(clean_up.ended_ms),
    )
