"""The admin's web application, without the wire endpoints, which stand in front of it."""

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from jobwheel import __version__
from jobwheel.admin.api.errors import install_handlers
from jobwheel.admin.api.gate import Gate
from jobwheel.admin.api.groups import group_router
from jobwheel.admin.api.health import health_router
from jobwheel.admin.api.jobs import job_router, schedule_router
from jobwheel.admin.api.models import ErrorReply
from jobwheel.admin.api.pages.routes import page_router
from jobwheel.admin.api.runs import run_router
from jobwheel.admin.api.scripts import script_router
from jobwheel.admin.api.services import Services
from jobwheel.admin.api.sessions import session_router

__all__ = ["Services", "create_app"]


def create_app(services: Services) -> ASGIApp:
    """The application behind its gate."""
    return Gate(create_routes(services), services.sign_in, services.metrics_token)


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
    app.include_router(health_router(services.status))
    app.include_router(page_router(services))
    return app


def _api_router(services: Services) -> APIRouter:
    router = APIRouter(prefix="/api/v1", responses={"4XX": {"model": ErrorReply}, "5XX": {"model": ErrorReply}})
    router.include_router(session_router(services.sign_in))
    router.include_router(group_router(services.groups))
    router.include_router(job_router(services.jobs, services.triggers, services.previews))
    router.include_router(script_router(services.scripts))
    router.include_router(schedule_router(services.previews))
    router.include_router(run_router(services.runs, services.run_logs))
    return router
