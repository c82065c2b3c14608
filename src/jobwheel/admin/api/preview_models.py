"""Previews of schedules as the API spells them."""

from pydantic import BaseModel, Field

from jobwheel.admin.api.models import Query


class PreviewQuery(Query):
    """How many times, and from when (now)."""

    count: int = 5
    from_: str | None = Field(default=None, alias="from")


class SchedulePreviewQuery(PreviewQuery):
    """A schedule that need not be a job's."""

    schedule_type: str
    schedule_conf: str = ""
    time_zone: str | None = None


class PreviewModel(BaseModel):
    """The next times of a schedule, and the schedule in words."""

    times: list[str]
    description: str
