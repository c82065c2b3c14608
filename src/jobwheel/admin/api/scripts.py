"""`/api/v1/jobs/{job_id}/script`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.models import Page, PageQuery, PathId, page_of
from jobwheel.admin.api.script_models import (
    ScriptBody,
    ScriptModel,
    ScriptVersionModel,
    ScriptVersionSourceModel,
    script_model,
    version_model,
    version_source_model,
)
from jobwheel.admin.domain.ids import JobId, ScriptVersionId
from jobwheel.admin.services.scripts import Scripts


def script_router(scripts: Scripts) -> APIRouter:
    """The routes of scripts."""
    router = APIRouter(prefix="/jobs/{job_id}/script", tags=["jobs"])

    @router.get("")
    async def get_script(job_id: PathId) -> ScriptModel:
        return script_model(await scripts.get(JobId(job_id)))

    @router.put("")
    async def save_script(job_id: PathId, body: ScriptBody, caller: WhoAsks) -> ScriptModel:
        own = scripts.within(caller.group_ids)
        saved = await own.save(JobId(job_id), body.source, body.remark, version=body.version, actor=caller.name)
        return script_model(saved)

    @router.get("/versions")
    async def list_script_versions(
        job_id: PathId, query: Annotated[PageQuery, QueryMark()]
    ) -> Page[ScriptVersionModel]:
        found = await scripts.versions(JobId(job_id), query.after, query.limit + 1)
        return page_of([version_model(each) for each in found], [each.id for each in found], query.limit)

    @router.get("/versions/{version_id}")
    async def get_script_version(job_id: PathId, version_id: PathId) -> ScriptVersionSourceModel:
        return version_source_model(*await scripts.version(JobId(job_id), ScriptVersionId(version_id)))

    return router
