"""`/api/v1/runs`."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Query as QueryMark

from jobwheel.admin.api.instants import from_text
from jobwheel.admin.api.models import Page, PathId, page_of
from jobwheel.admin.api.run_models import LogModel, LogQueryModel, RunModel, RunQuery, run_model
from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.services.run_logs import RunLogs
from jobwheel.admin.services.runs import Runs
from jobwheel.admin.store.run_list import RunFilter


def run_router(runs: Runs, run_logs: RunLogs) -> APIRouter:
    """The routes of runs."""
    router = APIRouter(prefix="/runs", tags=["runs"])

    @router.get("")
    async def list_runs(query: Annotated[RunQuery, QueryMark()]) -> Page[RunModel]:
        found = await runs.page(_filter(query), query.after, query.limit + 1)
        return page_of([run_model(run, runs.progress(run)) for run in found], [run.id for run in found], query.limit)

    @router.get("/{run_id}")
    async def get_run(run_id: PathId) -> RunModel:
        run = await runs.get(RunId(run_id))
        return run_model(run, runs.progress(run))

    @router.get("/{run_id}/log")
    async def read_run_log(run_id: PathId, query: Annotated[LogQueryModel, QueryMark()]) -> LogModel:
        page = await run_logs.read(RunId(run_id), query.from_line)
        return LogModel(from_line=page.from_line, to_line=page.to_line, content=page.content or "", is_end=page.is_end)

    return router


def _filter(query: RunQuery) -> RunFilter:
    return RunFilter(
        group_id=None if query.group_id is None else GroupId(query.group_id),
        job_id=None if query.job_id is None else JobId(query.job_id),
        phase=query.phase,
        outcome=query.outcome,
        trigger_type=query.trigger_type,
        executor_address=query.executor_address,
        planned_from_ms=from_text("planned_from", query.planned_from),
        planned_until_ms=from_text("planned_until", query.planned_until),
    )
