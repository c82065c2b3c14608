"""`/api/v1/runs`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark

from jobwheel.admin.api.caller import WhoAsks
from jobwheel.admin.api.instants import from_text
from jobwheel.admin.api.models import Page, PathId, page_of
from jobwheel.admin.api.run_models import (
    ChainModel,
    KillBody,
    LogModel,
    LogQueryModel,
    RunModel,
    RunQuery,
    WaitQuery,
    chain_model,
    run_model,
)
from jobwheel.admin.domain.caller import Caller
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.services.kills import Kills
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.store.run_list import RunFilter


def run_router(runs: Runs, run_logs: RunLogs, kills: Kills) -> APIRouter:
    """The routes of runs."""
    router = APIRouter(prefix="/runs", tags=["runs"])

    @router.get("")
    async def list_runs(query: Annotated[RunQuery, QueryMark()], caller: WhoAsks) -> Page[RunModel]:
        found = await runs.page(_filter(query, caller), query.after, query.limit + 1)
        return page_of([run_model(run, runs.progress(run)) for run in found], [run.id for run in found], query.limit)

    @router.get("/{run_id}")
    async def get_run(run_id: PathId, query: Annotated[WaitQuery, QueryMark()]) -> RunModel:
        run = await runs.ended(RunId(run_id), query.wait_s)
        return run_model(run, runs.progress(run))

    @router.get("/{run_id}/chain")
    async def get_run_chain(run_id: PathId, caller: WhoAsks) -> ChainModel:
        return chain_model(await runs.within(caller.group_ids).chain(RunId(run_id)))

    @router.get("/{run_id}/log")
    async def read_run_log(run_id: PathId, query: Annotated[LogQueryModel, QueryMark()]) -> LogModel:
        page = await run_logs.read(RunId(run_id), query.from_line)
        return LogModel(from_line=page.from_line, to_line=page.to_line, content=page.content or "", is_end=page.is_end)

    @router.post("/{run_id}/kill")
    async def kill_run(run_id: PathId, caller: WhoAsks, body: KillBody | None = None) -> RunModel:
        by_job = body is not None and body.by_job
        run = await kills.within(caller.group_ids).kill_run(RunId(run_id), by_job=by_job, actor=caller.name)
        return run_model(run, runs.progress(run))

    return router


def _filter(query: RunQuery, caller: Caller) -> RunFilter:
    return RunFilter(
        group_id=None if query.group_id is None else GroupId(query.group_id),
        job_id=None if query.job_id is None else JobId(query.job_id),
        phase=query.phase,
        outcome=query.outcome,
        trigger_type=query.trigger_type,
        executor_address=query.executor_address,
        planned_from_ms=from_text("planned_from", query.planned_from),
        planned_until_ms=from_text("planned_until", query.planned_until),
        group_ids=caller.group_ids,
    )
