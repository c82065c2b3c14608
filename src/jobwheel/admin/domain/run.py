"""A run, its phases and outcomes, and the one place that says which may follow which."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.wire.messages import SUCCESS, TIMED_OUT


class TriggerType(StrEnum):
    """What caused a run."""

    CRON = "CRON"
    MANUAL = "MANUAL"
    PARENT = "PARENT"
    API = "API"
    RETRY = "RETRY"
    MISFIRE = "MISFIRE"
    BACKFILL = "BACKFILL"

    @property
    def by_schedule(self) -> bool:
        """Whether the job's schedule is the cause: such pending runs go when the schedule is stopped or changed."""
        return self in (TriggerType.CRON, TriggerType.MISFIRE)


class Phase(StrEnum):
    """Where a run is on its way; a run that is done has none (`behaviour.md`, The life of a run)."""

    PENDING = "pending"
    SENDING = "sending"
    UNCONFIRMED = "unconfirmed"
    ACCEPTED = "accepted"


class Outcome(StrEnum):
    """How a run ended. The codes alone cannot tell these apart."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    KILLED = "killed"
    COVERED = "covered"
    DISCARDED = "discarded"
    LOST = "lost"


LEAVES: dict[Phase, frozenset[Phase | None]] = {
    Phase.PENDING: frozenset({Phase.SENDING, None}),
    # Back to pending only at its owner's stop, which knows that not a byte of it was written.
    Phase.SENDING: frozenset({Phase.ACCEPTED, Phase.UNCONFIRMED, Phase.PENDING, None}),
    Phase.UNCONFIRMED: frozenset({Phase.ACCEPTED, None}),
    Phase.ACCEPTED: frozenset({None}),
}
"""Every arrow of a run's life; None is done. The store's guards are drawn from it."""

SETTLED_BY_RESULT = (Phase.SENDING, Phase.UNCONFIRMED, Phase.ACCEPTED)
"""The phases that a result ends; it also replaces the outcome `lost`."""


# What executors of every make write of a run that a later one took the place of; the colon is either of two.
_COVERED = re.compile("block strategy effect[:\uff1a].*Cover Early")


def outcome_of_result(code: int, message: str | None = None) -> Outcome:
    """The outcome that a callback means (`behaviour.md`, Results)."""
    if code == SUCCESS:
        return Outcome.SUCCEEDED
    if code == TIMED_OUT:
        return Outcome.TIMED_OUT
    return Outcome.COVERED if message and _COVERED.search(message) else Outcome.FAILED


def triggered_ms(trigger_type: TriggerType, planned_ms: int, cause_ms: int) -> int:
    """A run's `logDateTime`: the planned time for type CRON, else the moment of the cause; whole seconds."""
    moment = planned_ms if trigger_type is TriggerType.CRON else cause_ms
    return moment - moment % 1000


class Shard(msgspec.Struct, frozen=True, gc=False):
    """One executor's part of a broadcast: `index` counts from 0. As a text, in the row: `index/total`."""

    index: int
    total: int

    def __str__(self) -> str:
        return f"{self.index}/{self.total}"

    @staticmethod
    def parse(text: str | None) -> "Shard | None":
        """A stored shard; None for no shard, and for what is none (a row that somebody else wrote)."""
        index, _, total = (text or "").partition("/")
        if not (index.isascii() and index.isdigit() and total.isascii() and total.isdigit()):
            return None
        return Shard(int(index), int(total))


class Lineage(msgspec.Struct, frozen=True, gc=False):
    """What a run comes of, if of another run.

    Attributes:
        first_run_id: the first run of its chain of retries; None if it is the first itself.
        parent_run_id: the run whose success made it, or the first of its chain.
        retries_left: how often it is retried still; of a first run the job says so when it fails.
        address: where it is to go; "" = wherever its route says.
    """

    first_run_id: RunId | None = None
    parent_run_id: RunId | None = None
    retries_left: int = 0
    address: str = ""


class NewRun(msgspec.Struct, frozen=True, gc=False):
    """A run that its cause writes as a pending row. Times are epoch milliseconds.

    `broadcast_id` is the run of shard 0, which every shard of a broadcast names. `lineage` is None for nearly all.
    """

    job_id: JobId
    group_id: GroupId
    trigger_type: TriggerType
    planned_ms: int
    due_ms: int
    triggered_ms: int
    parameter: str
    owner: NodeId | None
    named_addresses: tuple[str, ...] = ()
    attempt: int = 1
    shard: Shard | None = None
    broadcast_id: RunId | None = None
    lineage: Lineage | None = None


class PendingRun(msgspec.Struct, frozen=True, gc=False):
    """A run that waits for its due time: what the engine holds in memory of it.

    A shard of a broadcast that has been sent before goes to the `address` that it had. `retries_left` has a meaning
    from the second attempt on.
    """

    id: RunId
    job_id: JobId
    group_id: GroupId
    trigger_type: TriggerType
    planned_ms: int
    due_ms: int
    triggered_ms: int
    parameter: str
    named_addresses: tuple[str, ...]
    attempt: int
    shard: Shard | None = None
    address: str = ""
    broadcast_id: RunId | None = None
    parent_run_id: RunId | None = None
    retries_left: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A run as people see it: one row of the run log.

    `unheard_ms`: of an open run, since when nothing was heard. `kill_ms`: when a kill was asked for. Both are by the
    database's clock.
    """

    id: RunId
    job_id: JobId
    group_id: GroupId
    trigger_type: TriggerType | None
    phase: Phase | None
    outcome: Outcome | None
    planned_ms: int | None
    due_ms: int | None
    triggered_ms: int | None
    sent_ms: int | None
    accepted_ms: int | None
    ended_ms: int | None
    executor_address: str | None
    handler: str | None
    parameter: str | None
    attempt: int
    trigger_code: int
    trigger_message: str | None
    handle_code: int
    handle_message: str | None
    shard: Shard | None = None
    broadcast_id: RunId | None = None
    first_run_id: RunId | None = None
    parent_run_id: RunId | None = None
    instance_id: str | None = None
    unheard_ms: int | None = None
    kill_ms: int | None = None


@dataclass(frozen=True, slots=True)
class RelatedRun:
    """A run that another one has to do with, as people see it in a list. Times are epoch milliseconds."""

    id: RunId
    job_id: JobId
    trigger_type: TriggerType | None
    attempt: int
    shard: Shard | None
    phase: Phase | None
    outcome: Outcome | None
    planned_ms: int | None
    due_ms: int | None
    ended_ms: int | None
    executor_address: str | None


@dataclass(frozen=True, slots=True)
class Chain:
    """What a run comes of, and what came of it: by their ids, and within bounds.

    Attributes:
        parent: the run whose success made it.
        attempts: the run, what it is a retry of, and its retries.
        shards: the runs of its broadcast, with their retries.
        children: what the success of its chain, or of its broadcast, has made.
    """

    parent: RelatedRun | None
    attempts: Sequence[RelatedRun]
    shards: Sequence[RelatedRun]
    children: Sequence[RelatedRun]
