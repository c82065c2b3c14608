"""Runs as the API spells them."""

from typing import Annotated

from pydantic import BaseModel, Field

from jobwheel.admin.api.instants import to_text
from jobwheel.admin.api.models import Body, Id, PageQuery, Query, SearchText
from jobwheel.admin.domain.run import Chain, Outcome, Phase, RelatedRun, Run, TriggerType
from jobwheel.admin.services.progress import RunProgress
from jobwheel.admin.services.run_waits import MOST_WAIT_S


class WaitQuery(Query):
    """With `wait_s` the reply comes when the run is done, or after so many seconds, whichever is first."""

    wait_s: int = Field(default=0, ge=0, le=MOST_WAIT_S)


class RunQuery(PageQuery):
    """Which runs; planned from (included) until (not included)."""

    group_id: Id | None = None
    job_id: Id | None = None
    phase: Phase | None = None
    outcome: Outcome | None = None
    trigger_type: TriggerType | None = None
    executor_address: SearchText | None = None
    planned_from: str | None = None
    planned_until: str | None = None


class LogQueryModel(Query):
    """Which lines of the log."""

    from_line: Annotated[int, Field(ge=1, le=2**31 - 1)] = 1


class KillBody(Body):
    """How to kill.

    Some executors cannot end one run alone. With `by_job` they end all runs of the job that are there, and its queue.
    """

    by_job: bool = False


class KilledModel(BaseModel):
    """Of how many runs the kill has been asked for now."""

    count: int


class ProgressModel(BaseModel):
    """How far a run is: a fraction from 0 to 1 and words, and when the node that is asked heard of it."""

    fraction: float
    text: str
    at: str


class RunModel(BaseModel):
    """A run. `phase` is null once it is done; then it has an `outcome`, and no `progress` any more.

    Its executor tells its `progress` to the nodes that it is registered at; of others, and before the first word, it is
    null. A retry names the first run of its chain (`first_run_id`), a child the run whose success made it
    (`parent_run_id`), a shard the run of shard 0 (`broadcast_id`).
    `kill_asked_at` is set once somebody wants the run to end; `last_heard_at` is, while it is accepted or unconfirmed,
    when its executor was heard last.
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
    first_run_id: int | None
    parent_run_id: int | None
    kill_asked_at: str | None
    last_heard_at: str | None
    progress: ProgressModel | None


class RelatedRunModel(BaseModel):
    """A run that another one has to do with, without its texts."""

    id: int
    job_id: int
    trigger_type: str | None
    attempt: int
    shard_index: int | None
    shard_total: int | None
    phase: str | None
    outcome: str | None
    planned_at: str | None
    due_at: str | None
    ended_at: str | None
    executor_address: str | None


class ChainModel(BaseModel):
    """What a run comes of and what came of it: at most 1,000 runs of each kind, by their ids.

    `attempts` are the run, what it is a retry of, and its retries; `shards` the runs of its broadcast with their
    retries; `parent` is null for a run that is no child, and for one whose parent's row is gone; `children` are those
    of its chain and its broadcast.
    """

    parent: RelatedRunModel | None
    attempts: list[RelatedRunModel]
    shards: list[RelatedRunModel]
    children: list[RelatedRunModel]


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
        first_run_id=run.first_run_id,
        parent_run_id=run.parent_run_id,
        kill_asked_at=to_text(run.kill_ms),
        last_heard_at=to_text(run.unheard_ms) if run.phase in (Phase.ACCEPTED, Phase.UNCONFIRMED) else None,
        progress=None if progress is None else _progress_model(progress),
    )


def chain_model(chain: Chain) -> ChainModel:
    """A chain for the API."""
    return ChainModel(
        parent=None if chain.parent is None else _related_model(chain.parent),
        attempts=[_related_model(each) for each in chain.attempts],
        shards=[_related_model(each) for each in chain.shards],
        children=[_related_model(each) for each in chain.children],
    )


def _related_model(run: RelatedRun) -> RelatedRunModel:
    return RelatedRunModel(
        id=run.id,
        job_id=run.job_id,
        trigger_type=run.trigger_type,
        attempt=run.attempt,
        shard_index=None if run.shard is None else run.shard.index,
        shard_total=None if run.shard is None else run.shard.total,
        phase=run.phase,
        outcome=run.outcome,
        planned_at=to_text(run.planned_ms),
        due_at=to_text(run.due_ms),
        ended_at=to_text(run.ended_ms),
        executor_address=run.executor_address,
    )


def _progress_model(progress: RunProgress) -> ProgressModel:
    return ProgressModel(fraction=progress.fraction, text=progress.text, at=to_text(progress.at_ms))
