"""`/api/v1/jobs` and `/api/v1/schedule`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark

from jobwheel.admin.api.caller import Actor, PreferredLanguage
from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.job_models import (
    EventModel,
    JobCreate,
    JobModel,
    JobPatch,
    JobQuery,
    PreviewModel,
    PreviewQuery,
    SchedulePreviewQuery,
    TriggerBody,
    event_model,
    job_model,
)
from jobwheel.admin.api.models import Page, PageQuery, PathId, page_of
from jobwheel.admin.api.run_models import RunModel, run_model
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.previews import Preview, Previews, PreviewWish
from jobwheel.admin.services.triggers import Trigger, Triggers
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.schedule import Language


def job_router(jobs: Jobs, triggers: Triggers, previews: Previews) -> APIRouter:
    """The routes of jobs."""
    router = APIRouter(prefix="/jobs", tags=["jobs"])
    _add_reading(router, jobs, previews)
    _add_changing(router, jobs)

    @router.post("/{job_id}/run", status_code=201)
    async def run_job(job_id: PathId, actor: Actor, body: TriggerBody | None = None) -> RunModel:
        body = body or TriggerBody()
        wanted = Trigger(TriggerType.MANUAL, body.parameter, tuple(body.addresses))
        return run_model(await triggers.trigger(JobId(job_id), wanted, actor=actor))

    return router


def schedule_router(previews: Previews) -> APIRouter:
    """The preview of a schedule that is no job's yet."""
    router = APIRouter(prefix="/schedule", tags=["jobs"])

    @router.get("/preview")
    async def preview_schedule(
        query: Annotated[SchedulePreviewQuery, QueryMark()], language: PreferredLanguage
    ) -> PreviewModel:
        wish = _wish(query, language)
        return _preview_model(previews.of_schedule(query.schedule_type, query.schedule_conf, query.time_zone, wish))

    return router


def _add_reading(router: APIRouter, jobs: Jobs, previews: Previews) -> None:
    @router.get("")
    async def list_jobs(query: Annotated[JobQuery, QueryMark()]) -> Page[JobModel]:
        found = await jobs.page(_filter(query), query.after or 0, query.limit + 1)
        return page_of([job_model(job) for job in found], [job.id for job in found], query.limit)

    @router.get("/{job_id}")
    async def get_job(job_id: PathId) -> JobModel:
        return job_model(await jobs.get(JobId(job_id)))

    @router.get("/{job_id}/preview")
    async def preview_job(
        job_id: PathId, query: Annotated[PreviewQuery, QueryMark()], language: PreferredLanguage
    ) -> PreviewModel:
        return _preview_model(await previews.of_job(JobId(job_id), _wish(query, language)))

    @router.get("/{job_id}/events")
    async def list_job_events(job_id: PathId, query: Annotated[PageQuery, QueryMark()]) -> Page[EventModel]:
        found = await jobs.events(JobId(job_id), query.after, query.limit + 1)
        return page_of([event_model(event) for event in found], [event.id for event in found], query.limit)


def _add_changing(router: APIRouter, jobs: Jobs) -> None:
    @router.post("", status_code=201)
    async def create_job(body: JobCreate, actor: Actor) -> JobModel:
        return job_model(await jobs.create(body.given(), running=body.running, actor=actor))

    @router.patch("/{job_id}")
    async def update_job(job_id: PathId, body: JobPatch, actor: Actor) -> JobModel:
        return job_model(await jobs.update(JobId(job_id), body.given(), version=body.version, actor=actor))

    @router.delete("/{job_id}", status_code=204)
    async def delete_job(job_id: PathId, actor: Actor) -> None:
        await jobs.delete(JobId(job_id), actor=actor)

    @router.post("/{job_id}/start")
    async def start_job(job_id: PathId, actor: Actor) -> JobModel:
        return job_model(await jobs.start(JobId(job_id), actor=actor))

    @router.post("/{job_id}/stop")
    async def stop_job(job_id: PathId, actor: Actor) -> JobModel:
        return job_model(await jobs.stop(JobId(job_id), actor=actor))


def _filter(query: JobQuery) -> JobFilter:
    return JobFilter(
        group_id=None if query.group_id is None else GroupId(query.group_id),
        running=None if query.status is None else query.status == "running",
        handler=query.handler,
        name=query.name,
    )


def _wish(query: PreviewQuery, language: Language) -> PreviewWish:
    return PreviewWish(query.count, from_text("from", query.from_), language)


def _preview_model(preview: Preview) -> PreviewModel:
    return PreviewModel(times=[to_text(each) for each in preview.times_ms], description=preview.description)
