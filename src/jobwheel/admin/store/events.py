"""Events: written in the transaction of what they tell."""

import json
from collections.abc import Sequence

from sqlalchemy import Connection, Row, insert, select

from jobwheel.admin.domain.event import Event, NewEvent
from jobwheel.admin.domain.ids import EventId, GroupId, JobId, RunId
from jobwheel.admin.store.tables import event


def insert_events(connection: Connection, events: Sequence[NewEvent]) -> None:
    """Write events, in their order."""
    if events:
        connection.execute(insert(event), [_values(each) for each in events])


def insert_event(connection: Connection, new: NewEvent) -> None:
    """Write one event."""
    insert_events(connection, [new])


def list_job_events(connection: Connection, job_id: JobId, before_id: int | None, limit: int) -> list[Event]:
    """A job's events, newest first, with ids below `before_id`. They outlive the job."""
    query = select(event).where(event.c.job_id == job_id).order_by(event.c.id.desc()).limit(limit)
    if before_id is not None:
        query = query.where(event.c.id < before_id)
    return [_event(row) for row in connection.execute(query)]


def _values(new: NewEvent) -> dict[str, object]:
    return {
        "at_ms": new.at_ms,
        "kind": new.kind.value,
        "actor": new.actor,
        "job_group": new.group_id,
        "job_id": new.job_id,
        "run_id": new.run_id,
        "details": json.dumps(dict(new.details), ensure_ascii=False),
    }


def _event(row: Row[tuple[object, ...]]) -> Event:
    return Event(
        id=EventId(row.id),
        kind=row.kind,
        at_ms=row.at_ms,
        actor=row.actor,
        group_id=None if row.job_group is None else GroupId(row.job_group),
        job_id=None if row.job_id is None else JobId(row.job_id),
        run_id=None if row.run_id is None else RunId(row.run_id),
        details=json.loads(row.details),
    )
