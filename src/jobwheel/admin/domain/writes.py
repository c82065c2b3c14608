"""What the engine tells the run log: each is one arrow of a run's life, applied in batches by one writer."""

from dataclasses import dataclass

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome

MOST_MESSAGE_BYTES = 60_000
"""A longer message is cut, with a mark (`behaviour.md`, Results)."""


@dataclass(frozen=True, slots=True)
class TakeOff:
    """pending → sending: the address is chosen; times are epoch milliseconds."""

    run_id: RunId
    address: str
    handler: str
    route: str
    instance_id: str | None


@dataclass(frozen=True, slots=True)
class Accepted:
    """sending or unconfirmed → accepted: the executor said yes."""

    run_id: RunId
    accepted_ms: int
    instance_id: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Unsent:
    """sending or unconfirmed → done, without a result: rejected, unreachable, discarded, lost."""

    run_id: RunId
    ended_ms: int
    code: int
    outcome: Outcome
    message: str


@dataclass(frozen=True, slots=True)
class Unconfirmed:
    """sending → unconfirmed: it may or may not have arrived. `check_ms` is when it is looked at first."""

    run_id: RunId
    since_ms: int
    check_ms: int
    message: str


@dataclass(frozen=True, slots=True)
class Settlement:
    """A result. With `group_id` it counts only for a run of that group (a group's own credentials)."""

    run_id: RunId
    ended_ms: int
    code: int
    outcome: Outcome
    message: str
    group_id: GroupId | None = None


RunWrite = Accepted | Unsent | Unconfirmed | Settlement


@dataclass(frozen=True, slots=True)
class Applied:
    """What a batch changed: the jobs whose runs ended, and whether a FIX_DELAY job got its next time."""

    ended_jobs: frozenset[JobId]
    rescheduled: bool


def cut_message(text: str, most_bytes: int = MOST_MESSAGE_BYTES) -> str:
    """The text, or its beginning with a mark if it is longer than `most_bytes` as UTF-8.

    Characters that cannot be stored (lone surrogates, NUL) are shown as U+FFFD.
    """
    data = text.replace("\x00", "\ufffd").encode("utf-8", errors="replace")
    if len(data) <= most_bytes:
        return data.decode()
    mark = f"\n… cut: {len(data)} bytes in all"
    kept = data[: most_bytes - len(mark.encode())].decode("utf-8", errors="ignore")
    return kept + mark
