"""`/health` and `/metrics`: for monitors."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from jobwheel.admin.api.metrics import Metrics
from jobwheel.admin.services.alarm_channels import AlarmChannels
from jobwheel.admin.services.status import EngineStatus


class ReasonModel(BaseModel):
    """Why it is not healthy."""

    code: str
    message: str


class HealthModel(BaseModel):
    """The verdict; red comes with its reasons and with status 503."""

    status: str
    reasons: list[ReasonModel]


def health_router(status: EngineStatus, alarms: AlarmChannels) -> APIRouter:
    """The routes of monitors."""
    router = APIRouter(tags=["monitoring"])
    metrics = Metrics(status, alarms)

    @router.head("/health", include_in_schema=False)
    @router.get("/health")
    async def health(response: Response) -> HealthModel:
        reasons = [ReasonModel(code=each.code, message=each.message) for each in status.reasons()]
        response.status_code = 503 if reasons else 200
        return HealthModel(status="red" if reasons else "green", reasons=reasons)

    @router.get("/metrics", include_in_schema=False)
    async def read_metrics() -> Response:
        return Response(metrics.render(), media_type=CONTENT_TYPE_LATEST)

    return router
