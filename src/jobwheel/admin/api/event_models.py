"""Events as the API spells them."""

from typing import Any

from pydantic import BaseModel

from jobwheel.admin.api.instants import to_text
from jobwheel.admin.domain.event import Event


class EventModel(BaseModel):
    """Something that happened."""

    id: int
    kind: str
    at: str
    actor: str
    group_id: int | None
    job_id: int | None
    run_id: int | None
    details: dict[str, Any]


def event_model(event: Event) -> EventModel:
    """An event for the API."""
    return EventModel(
        id=event.id,
        kind=event.kind,
        at=to_text(event.at_ms),
        actor=event.actor,
        group_id=event.group_id,
        job_id=event.job_id,
        run_id=event.run_id,
        details=dict(event.details),
    )
