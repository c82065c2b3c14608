"""Whether a run that ended is tried again, and when: the rules of `behaviour.md`, Results, without any store."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.ids import GroupId, JobId, NodeId, RunId
from jobwheel.admin.domain.policies import RetryBackoff
from jobwheel.admin.domain.run import Lineage, NewRun, Outcome, Shard, TriggerType, triggered_ms

MOST_RETRIES: Final = 1_000
"""How often a job's runs may be retried."""

MOST_RETRY_WAIT_S: Final = 30 * 86_400
"""The longest time that a retry waits, also if the interval doubles without a bound of the job's own."""

RETRIED: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.LOST})
"""Ends after which a run is tried again, if it may be; `killed`, `covered` and `discarded` are somebody's will."""

_MOST_DOUBLINGS = 32


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """What a job says about the retries of its runs; what somebody else may have written is taken within the bounds.

    `group_id` is the group that the job is in now.
    """

    group_id: GroupId
    count: int
    interval_s: int
    backoff: str | None
    most_s: int | None

    def wait_s(self, attempt: int) -> int:
        """How long the retry after the `attempt`-th try waits (counted from 1)."""
        wait_s = max(0, self.interval_s)
        if self.backoff == RetryBackoff.DOUBLING:
            wait_s <<= min(max(0, attempt - 1), _MOST_DOUBLINGS)
        # The job's own bound is one of growing.
        most_s = max(self.most_s or 0, self.interval_s) if self.most_s is not None else MOST_RETRY_WAIT_S
        return min(wait_s, most_s, MOST_RETRY_WAIT_S)


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has just ended, with what its retry takes from it. Times are epoch milliseconds.

    `retries_stored` is what its row says; it counts from the second attempt on, and for runs that another make of
    admin has written (`is_foreign`).
    """

    id: RunId
    job_id: JobId
    outcome: Outcome
    ended_ms: int
    planned_ms: int
    attempt: int
    first_run_id: RunId | None
    parent_run_id: RunId | None
    retries_stored: int
    is_foreign: bool
    parameter: str
    named_addresses: tuple[str, ...]
    shard: Shard | None
    broadcast_id: RunId | None
    address: str
    has_result: bool

    @property
    def chain_id(self) -> RunId:
        """The first run of its chain of retries."""
        return self.first_run_id or self.id

    def retries_left(self, policy: RetryPolicy) -> int:
        """How often it may be tried again."""
        stored = self.retries_stored if self.attempt > 1 or self.is_foreign else policy.count
        return max(0, min(stored, MOST_RETRIES))


@dataclass(frozen=True, slots=True)
class Try:
    """One run of a chain: which attempt it is, and how it ended, if it did."""

    attempt: int
    outcome: Outcome | None


def goes_on(run: EndedRun, chain: Collection[Try]) -> bool:
    """Whether the chain has gone on already (after "lost", before a real failure), or has succeeded meanwhile."""
    return any(each.attempt > run.attempt or each.outcome is Outcome.SUCCEEDED for each in chain)


def retry_of(run: EndedRun, policy: RetryPolicy, chain: Collection[Try], owner: NodeId) -> NewRun | None:
    """The run that tries again what `run` did not do; None if that is not to be."""
    left = run.retries_left(policy)
    if run.outcome not in RETRIED or left == 0 or goes_on(run, chain):
        return None
    # A shard keeps its place; any other run takes its route anew.
    address = run.address if run.shard is not None else ""
    return NewRun(
        job_id=run.job_id,
        group_id=policy.group_id,
        trigger_type=TriggerType.RETRY,
        planned_ms=run.planned_ms,
        due_ms=run.ended_ms + 1000 * policy.wait_s(run.attempt),
        triggered_ms=triggered_ms(TriggerType.RETRY, run.planned_ms, run.ended_ms),
        parameter=run.parameter,
        owner=owner,
        named_addresses=run.named_addresses,
        attempt=run.attempt + 1,
        shard=run.shard,
        broadcast_id=run.broadcast_id,
        lineage=Lineage(run.chain_id, run.parent_run_id, left - 1, address),
    )
