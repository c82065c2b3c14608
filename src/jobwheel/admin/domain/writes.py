"""What the engine tells the run log: each is one arrow of a run's life, applied in batches by one writer."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.run import Outcome, PendingRun
from jobwheel.wire.mend import without_surrogates

MOST_MESSAGE_BYTES = 60_000
"""A longer message is cut, with a mark (`behaviour.md`, Results)."""


class TakeOff(msgspec.Struct, frozen=True, gc=False):
    """pending → sending: the address is chosen; times are epoch milliseconds."""

    run_id: RunId
    address: str
    handler: str
    route: str
    instance_id: str | None


class TakeBack(msgspec.Struct, frozen=True, gc=False):
    """sending → pending: certainly nothing of the run was written.

    Only the take-off of `owner` at `sent_ms` is taken back, no later one. With `is_broadcast` all shards that were made
    of the run are as well.
    """

    run_id: RunId
    owner: NodeId
    sent_ms: int
    is_broadcast: bool = False


class Accepted(msgspec.Struct, frozen=True, gc=False):
    """sending or unconfirmed → accepted: the executor said yes.

    By the database's clock: when it was heard of, and when it is looked at first if there is no result until then.
    Without these it is never looked at.
    """

    run_id: RunId
    accepted_ms: int
    instance_id: str | None
    message: str
    heard_ms: int | None = None
    check_ms: int | None = None


class Unsent(msgspec.Struct, frozen=True, gc=False):
    """sending or unconfirmed → done, without a result: rejected, unreachable, discarded, lost.

    With `owner` only a run that this node is sending still: what a node learnt that was cut off says nothing of what
    its heir has sent since. Whatever it says, a run that a kill was asked for has been killed unsent.
    """

    run_id: RunId
    ended_ms: int
    code: int
    outcome: Outcome
    message: str
    owner: NodeId | None = None


class Unanswered(msgspec.Struct, frozen=True, gc=False):
    """accepted or unconfirmed → done, since no result is waited for any more.

    Killed if a kill was asked for, else lost; `message` stands where a result's would.
    """

    run_id: RunId
    ended_ms: int
    message: str


class Cancelled(msgspec.Struct, frozen=True, gc=False):
    """pending, whoever's, or sending → done: killed before anything of it was written. Only if a kill was asked for."""

    run_id: RunId
    ended_ms: int
    message: str


class Unconfirmed(msgspec.Struct, frozen=True, gc=False):
    """sending → unconfirmed: it may or may not have arrived. `check_ms` is when it is looked at first."""

    run_id: RunId
    since_ms: int
    check_ms: int
    message: str


class Settlement(msgspec.Struct, frozen=True, gc=False):
    """A result. With `group_id` it counts only for a run of that group (a group's own credentials).

    `accepted` is the executor's yes, if it came so shortly before that both are written at once.
    """

    run_id: RunId
    ended_ms: int
    code: int
    outcome: Outcome
    message: str
    group_id: GroupId | None = None
    accepted: Accepted | None = None


RunWrite = Accepted | Unsent | Unanswered | Cancelled | Unconfirmed | Settlement


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A run of the job that a write has ended, and how: `killed` for a failure if somebody had asked for that."""

    run_id: RunId
    job_id: JobId
    outcome: Outcome
    ended_ms: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What a batch changed.

    Attributes:
        ended: the runs that it ended.
        rescheduled: whether a FIX_DELAY job got its next time.
        called: whether runs that waited for room in their job's limit are this node's now.
        pending: the retries and children that it made; this node's, and they may fly once it is committed.
    """

    ended: Sequence[Ended]
    rescheduled: bool
    called: bool = False
    pending: Sequence[PendingRun] = ()


def cut_message(text: str, most_bytes: int = MOST_MESSAGE_BYTES) -> str:
    """The text, or its beginning with a mark if it is longer than `most_bytes` as UTF-8.

    Characters that cannot be stored (lone surrogates, NUL) are shown as U+FFFD.
    """
    if text.isascii() and len(text) <= most_bytes and "\x00" not in text:
        # Nearly all of them.
        return text
    data = without_surrogates(text.replace("\x00", "\ufffd")).encode()
    if len(data) <= most_bytes:
        return data.decode()
    mark = f"\n… cut: {len(data)} bytes in all"
    kept = data[: most_bytes - len(mark.encode())].decode("utf-8", errors="ignore")
    return kept + mark
