"""A run's trigger message: how it was dispatched, line by line."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.job import DispatchJob
from jobwheel.admin.domain.run import PendingRun, Shard
from jobwheel.admin.domain.writes import cut_message
from jobwheel.admin.engine.executor_client import Answer, AnswerKind

_WORDS = {
    AnswerKind.ACCEPTED: "accepted",
    AnswerKind.STOPPING: "is shutting down",
    AnswerKind.REJECTED: "rejected",
    AnswerKind.UNREACHABLE: "unreachable",
    AnswerKind.UNCONFIRMED: "gave no usable answer: the run may or may not have arrived",
}
_MOST_ADDRESSES = 20


def heading(node_id: NodeId, run: PendingRun, job: DispatchJob, addresses: Sequence[str], *, fixed: bool) -> str:
    """The facts of the dispatch, before any address was asked."""
    shown = ", ".join(addresses[:_MOST_ADDRESSES]) or "none is live"
    more = f" and {len(addresses) - _MOST_ADDRESSES} more" if len(addresses) > _MOST_ADDRESSES else ""
    return (
        f"type: {run.trigger_type}\n"
        f"node: {node_id}\n"
        f"registration: {'fixed list' if fixed else 'registered'}\n"
        f"addresses: {shown}{more}\n"
        f"route strategy: {job.route_strategy}{', address named by hand' if run.named_addresses else ''}\n"
        f"block strategy: {job.block_strategy}\n"
        f"time-out: {f'{job.timeout_s} s' if job.timeout_s else 'none'}\n"
        f"attempt: {run.attempt}\n"
    )


def shard(part: Shard | None) -> str:
    """Which part of a broadcast it is."""
    return "" if part is None else f"shard: {part.index} of {part.total}\n"


def no_address() -> str:
    """There is nowhere to send it."""
    return "no live address: start an executor of the group, or see why none beats\n"


def none_said_yes() -> str:
    """The router asked, and nobody will have it."""
    return "no address that was asked said yes\n"


def over_limit(limit: int | None) -> str:
    """The job's limit is reached, and its runs do not wait."""
    return f"discarded: {limit} runs of the job are under way, and no more may be at once\n"


def left(address: str) -> str:
    """A candidate that left the registry before it was its turn."""
    return f"{address} has left the registry\n"


def out(address: str) -> str:
    """A candidate that somebody else found unreachable before it was its turn."""
    return f"{address} was unreachable a moment ago\n"


def asked(address: str, answer: Answer) -> str:
    """One address that was asked, with what it said."""
    said = f": {answer.message}" if answer.message else ""
    return cut_message(f"{address} {_WORDS[answer.kind]} (code {answer.code}){said}\n", 4_000)
