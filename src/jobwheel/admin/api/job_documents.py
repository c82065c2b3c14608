"""Jobs by app name and key: `/api/v1/groups/{app_name}/jobs/{key}`, and whole documents of them."""

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Path as PathMark
from fastapi import Query as QueryMark
from pydantic import Field

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.job_document_models import (
    ApplyBody,
    ChangesModel,
    DocumentBody,
    ExportModel,
    KeyedJobBody,
    PutJobModel,
    changes_model,
    export_model,
    put_model,
)
from jobwheel.admin.api.job_models import JobModel, TriggerBody, job_model
from jobwheel.admin.api.models import SEARCHABLE, Query, SearchText
from jobwheel.admin.api.run_models import RunModel, run_model
from jobwheel.admin.domain.caller import Right
from jobwheel.admin.domain.job import JobAddress
from jobwheel.admin.services.job_documents import JobDocuments
from jobwheel.admin.services.job_wishes import Action
from jobwheel.admin.services.jobs import Jobs
from jobwheel.admin.services.triggers import Trigger, Triggers

AppName = Annotated[str, PathMark(max_length=64), SEARCHABLE]
Key = Annotated[str, PathMark(max_length=128), SEARCHABLE]


class ExportQuery(Query):
    """Which groups; without any: all that the caller may see."""

    app_name: list[SearchText] = Field(default_factory=list, max_length=1000)


def keyed_job_router(documents: JobDocuments, jobs: Jobs, triggers: Triggers) -> APIRouter:
    """The routes of one job by app name and key."""
    router = APIRouter(prefix="/groups/{app_name}/jobs/{key}", tags=["jobs"])

    @router.get("")
    async def get_keyed_job(app_name: AppName, key: Key, caller: WhoAsks) -> JobModel:
        return job_model(await documents.within(caller.group_ids).find(JobAddress(app_name, key)))

    @router.put("", responses={201: {"model": PutJobModel}})
    async def put_keyed_job(
        app_name: AppName, key: Key, body: KeyedJobBody, caller: WhoAsks, response: Response
    ) -> PutJobModel:
        wish = body.wish(JobAddress(app_name, key))
        own = documents.within(caller.group_ids)
        changes = await own.put(wish, actor=caller.name, may_script=caller.right >= Right.SCRIPTS)
        response.status_code = 201 if changes.jobs[0].action is Action.CREATE else 200
        return put_model(changes)

    @router.delete("", status_code=204)
    async def delete_keyed_job(app_name: AppName, key: Key, caller: WhoAsks) -> None:
        job = await documents.within(caller.group_ids).find(JobAddress(app_name, key))
        await jobs.within(caller.group_ids).delete(job.id, actor=caller.name)

    @router.post("/run", status_code=201)
    async def run_keyed_job(app_name: AppName, key: Key, caller: WhoAsks, body: TriggerBody | None = None) -> RunModel:
        body = body or TriggerBody()
        job = await documents.within(caller.group_ids).find(JobAddress(app_name, key))
        wanted = Trigger(caller.trigger_type, body.parameter, tuple(body.addresses))
        return run_model(await triggers.within(caller.group_ids).trigger(job.id, wanted, actor=caller.name))

    return router


def job_document_router(documents: JobDocuments) -> APIRouter:
    """The routes of documents."""
    router = APIRouter(prefix="/jobs", tags=["jobs"])

    @router.get("/export")
    async def export_jobs(query: Annotated[ExportQuery, QueryMark()], caller: WhoAsks) -> ExportModel:
        return export_model(await documents.within(caller.group_ids).export(query.app_name))

    @router.post("/plan")
    async def plan_jobs(body: DocumentBody, caller: WhoAsks) -> ChangesModel:
        return changes_model(await documents.within(caller.group_ids).plan(body.read(), actor=caller.name))

    @router.post("/apply")
    async def apply_jobs(body: ApplyBody, caller: WhoAsks) -> ChangesModel:
        own, may_script = documents.within(caller.group_ids), caller.right >= Right.SCRIPTS
        changes = await own.apply(body.read(), fingerprint=body.fingerprint, actor=caller.name, may_script=may_script)
        return changes_model(changes)

    return router
