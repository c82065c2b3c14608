"""The admin's web application, without the wire endpoints, which stand in front of it."""

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from jobwheel import __version__
from jobwheel.admin.api.alarms import alarm_router
from jobwheel.admin.api.backfills import backfill_router
from jobwheel.admin.api.bulk_jobs import bulk_router
from jobwheel.admin.api.clean_ups import clean_up_router
from jobwheel.admin.api.errors import install_handlers
from jobwheel.admin.api.gate import Gate
from jobwheel.admin.api.groups import group_router
from jobwheel.admin.api.health import health_router
from jobwheel.admin.api.identity import Doorkeeper
from jobwheel.admin.api.job_documents import job_document_router, keyed_job_router
from jobwheel.admin.api.jobs import job_router, schedule_router
from jobwheel.admin.api.models import ErrorReply
from jobwheel.admin.api.pages.routes import page_router
from jobwheel.admin.api.reports import report_router
from jobwheel.admin.api.reruns import rerun_router
from jobwheel.admin.api.runs import run_router
from jobwheel.admin.api.scripts import script_router
from jobwheel.admin.api.services import Services
from jobwheel.admin.api.sessions import session_router
from jobwheel.admin.api.tokens import group_token_router, token_router

__all__ = ["Services", "behind_gate", "create_app", "create_routes"]


def create_app(services: Services) -> ASGIApp:
    """The application behind its gate."""
    return behind_gate(services, create_routes(services))


def behind_gate(services: Services, routes: ASGIApp) -> ASGIApp:
    """The routes with somebody in front of them who asks who calls."""
    doorkeeper = Doorkeeper(services.sign_in, services.api_tokens, services.belonging, services.metrics_token)
    return Gate(routes, doorkeeper)


def create_routes(services: Services) -> FastAPI:
    """The routes alone, with nobody asking who calls: for the gate and for tests."""
    app = FastAPI(
        title="Jobwheel",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    install_handlers(app)
    app.include_router(_api_router(services))
    app.include_router(health_router(services.status, services.alarm_channels))
    app.include_router(page_router(services))
    return app


def _api_router(services: Services) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={"4XX": {"model": ErrorReply}, "5XX": {"model": ErrorReply}})
    router.include_router(session_router(services.sign_in))
    router.include_router(token_router(services.api_tokens))
    router.include_router(group_router(services.groups, services.probes))
    router.include_router(group_token_router(services.group_tokens))
    router.include_router(keyed_job_router(services.job_documents, services.jobs, services.triggers))
    # Before the jobs by their ids: a word in the place of an id would be a bad one.
    router.include_router(job_document_router(services.job_documents))
    router.include_router(bulk_router(services.bulk_jobs))
    router.include_router(backfill_router(services.backfills))
    router.include_router(rerun_router(services.reruns))
    router.include_router(job_router(services.jobs, services.triggers, services.previews, services.kills))
    router.include_router(script_router(services.scripts))
    router.include_router(alarm_router(services.alarm_channels))
    router.include_router(schedule_router(services.previews))
    router.include_router(report_router(services.reports, services.zone_name))
    # Before the runs: their routes would take its name for an id.
    router.include_router(clean_up_router(services.clean_ups))
    router.include_router(run_router(services.runs, services.run_logs, services.kills))
    return router
