"""Runs as the API spells them."""

from typing import Annotated

from pydantic import BaseModel, Field

from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Id, PageQuery, Query
from jobwheel.admin.domain.run import Outcome, Phase, Run, TriggerType
from jobwheel.admin.services.progress import RunProgress


class RunQuery(PageQuery):
    """Which runs; planned from (included) until (not included)."""

    group_id: Id | None = None
    job_id: Id | None = None
    phase: Phase | None = None
    outcome: Outcome | None = None
    trigger_type: TriggerType | None = None
    executor_address: str | None = None
    planned_from: str | None = None
    planned_until: str | None = None


class LogQueryModel(Query):
    """Which lines of the log."""

    from_line: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1


class ProgressModel(BaseModel):
    """How far a run is: a fraction from 0 to 1 and words, and when the node that is asked heard of it."""

    fraction: float
    text: str
    at: str


class RunModel(BaseModel):
    """A run. `phase` is null once it is done; then it has an `outcome`, and no `progress` any more.

    Its executor tells its `progress` to the nodes that it is registered at; of others, and before the first word, it is
    null.
    """

    id: int
    group_id: int
    job_id: int
    trigger_type: str | None
    phase: str | None
    outcome: str | None
    planned_at: str | None
    due_at: str | None
    triggered_at: str | None
    sent_at: str | None
    accepted_at: str | None
    ended_at: str | None
    executor_address: str | None
    handler: str | None
    parameter: str | None
    attempt: int
    trigger_code: int
    trigger_message: str | None
    handle_code: int
    handle_message: str | None
    shard_index: int | None
    shard_total: int | None
    broadcast_id: int | None
    progress: ProgressModel | None


class LogModel(BaseModel):
    """Lines of a run's log. `to_line` below `from_line`: nothing new. `is_end`: nothing more will come."""

    from_line: int
    to_line: int
    content: str
    is_end: bool


def run_model(run: Run, progress: RunProgress | None = None) -> RunModel:
    """A run for the API."""
    return RunModel(
        id=run.id,
        group_id=run.group_id,
        job_id=run.job_id,
        trigger_type=run.trigger_type,
        phase=run.phase,
        outcome=run.outcome,
        planned_at=to_text(run.planned_ms),
        due_at=to_text(run.due_ms),
        triggered_at=to_text(run.triggered_ms),
        sent_at=to_text(run.sent_ms),
        accepted_at=to_text(run.accepted_ms),
        ended_at=to_text(run.ended_ms),
        executor_address=run.executor_address,
        handler=run.handler,
        parameter=run.parameter,
        attempt=run.attempt,
        trigger_code=run.trigger_code,
        trigger_message=run.trigger_message,
        handle_code=run.handle_code,
        handle_message=run.handle_message,
        shard_index=None if run.shard is None else run.shard.index,
        shard_total=None if run.shard is None else run.shard.total,
        broadcast_id=run.broadcast_id,
        progress=None if progress is None else _progress_model(progress),
    )


def _progress_model(progress: RunProgress) -> ProgressModel:
    return ProgressModel(fraction=progress.fraction, text=progress.text, at=to_text(progress.at_ms))
