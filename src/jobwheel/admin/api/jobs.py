"""`/api/v1/jobs` and `/api/v1/schedule`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark

from jobwheel.admin.api.caller import PreferredLanguage, WhoAsks
from jobwheel.admin.api.event_models import EventModel, event_model
from jobwheel.admin.api.instants import from_text, to_text
from jobwheel.admin.api.job_models import JobCreate, JobModel, JobPatch, JobQuery, TriggerBody, job_model
from jobwheel.admin.api.models import Page, PageQuery, PathId, page_of
from jobwheel.admin.api.preview_models import PreviewModel, PreviewQuery, SchedulePreviewQuery
from jobwheel.admin.api.run_models import KillBody, KilledModel, RunModel, run_model
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.services.belonging import check_job_fields
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.kills import Kills
from jobwheel.admin.services.previews import Preview, Previews, PreviewWish
from jobwheel.admin.services.triggers import Trigger, Triggers
from jobwheel.admin.store.jobs import JobFilter
from jobwheel.schedule import Language


def job_router(jobs: Jobs, triggers: Triggers, previews: Previews, kills: Kills) -> APIRouter:
    """The routes of jobs."""
    router = APIRouter(prefix="/jobs", tags=["jobs"])
    _add_reading(router, jobs, previews)
    _add_changing(router, jobs)

    @router.post("/{job_id}/run", status_code=201)
    async def run_job(job_id: PathId, caller: WhoAsks, body: TriggerBody | None = None) -> RunModel:
        body = body or TriggerBody()
        wanted = Trigger(caller.trigger_type, body.parameter, tuple(body.addresses))
        return run_model(await triggers.within(caller.group_ids).trigger(JobId(job_id), wanted, actor=caller.name))

    @router.post("/{job_id}/kill-runs")
    async def kill_job_runs(job_id: PathId, caller: WhoAsks, body: KillBody | None = None) -> KilledModel:
        by_job = body is not None and body.by_job
        own = kills.within(caller.group_ids)
        return KilledModel(count=await own.kill_job_runs(JobId(job_id), by_job=by_job, actor=caller.name))

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
    async def list_jobs(query: Annotated[JobQuery, QueryMark()], caller: WhoAsks) -> Page[JobModel]:
        found = await jobs.within(caller.group_ids).page(_filter(query, caller), query.after or 0, query.limit + 1)
        activity = await jobs.activity([job.id for job in found[: query.limit]])
        models = [job_model(job, activity.get(job.id)) for job in found]
        return page_of(models, [job.id for job in found], query.limit)

    @router.get("/{job_id}")
    async def get_job(job_id: PathId, caller: WhoAsks) -> JobModel:
        return await _shown(jobs, await jobs.within(caller.group_ids).get(JobId(job_id)))

    @router.get("/{job_id}/preview")
    async def preview_job(
        job_id: PathId, query: Annotated[PreviewQuery, QueryMark()], language: PreferredLanguage
    ) -> PreviewModel:
        return _preview_model(await previews.of_job(JobId(job_id), _wish(query, language)))

    @router.get("/{job_id}/events")
    async def list_job_events(
        job_id: PathId, query: Annotated[PageQuery, QueryMark()], caller: WhoAsks
    ) -> Page[EventModel]:
        found = await jobs.within(caller.group_ids).events(JobId(job_id), query.after, query.limit + 1)
        return page_of([event_model(event) for event in found], [event.id for event in found], query.limit)


def _add_changing(router: APIRouter, jobs: Jobs) -> None:
    @router.post("", status_code=201)
    async def create_job(body: JobCreate, caller: WhoAsks) -> JobModel:
        given = body.given()
        check_job_fields(caller, given)
        own = jobs.within(caller.group_ids)
        return job_model(await own.create(given, running=body.running, actor=caller.name))

    @router.patch("/{job_id}")
    async def update_job(job_id: PathId, body: JobPatch, caller: WhoAsks) -> JobModel:
        given = body.given()
        check_job_fields(caller, given)
        own = jobs.within(caller.group_ids)
        return await _shown(jobs, await own.update(JobId(job_id), given, version=body.version, actor=caller.name))

    @router.delete("/{job_id}", status_code=204)
    async def delete_job(job_id: PathId, caller: WhoAsks) -> None:
        await jobs.within(caller.group_ids).delete(JobId(job_id), actor=caller.name)

    @router.post("/{job_id}/start")
    async def start_job(job_id: PathId, caller: WhoAsks) -> JobModel:
        return await _shown(jobs, await jobs.within(caller.group_ids).start(JobId(job_id), actor=caller.name))

    @router.post("/{job_id}/stop")
    async def stop_job(job_id: PathId, caller: WhoAsks) -> JobModel:
        return await _shown(jobs, await jobs.within(caller.group_ids).stop(JobId(job_id), actor=caller.name))


async def _shown(jobs: Jobs, job: Job) -> JobModel:
    return job_model(job, (await jobs.activity([job.id])).get(job.id))


def _filter(query: JobQuery, caller: Caller) -> JobFilter:
    return JobFilter(
        group_id=None if query.group_id is None else GroupId(query.group_id),
        running=None if query.status is None else query.status == "running",
        handler=query.handler,
        name=query.name,
        tag=query.tag,
        group_ids=caller.group_ids,
    )


def _wish(query: PreviewQuery, language: Language) -> PreviewWish:
    return PreviewWish(query.count, from_text("from", query.from_), language)


def _preview_model(preview: Preview) -> PreviewModel:
    return PreviewModel(times=[to_text(each) for each in preview.times_ms], description=preview.description)
