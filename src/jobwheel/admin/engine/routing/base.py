"""What a strategy is."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.executor_answers import Answer


class Router(Protocol):
    """Orders a group's live addresses for one run of a job. Called by the engine's loop, once for each run."""

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        """The candidates, the chosen one first, then in the order in which they are to be tried.

        `candidates` is not empty, in a fixed list's own order or else sorted; the answer holds each of them once.
        `now_ms` is epoch milliseconds.
        """
        ...

    def forget_unused(self, now_ms: int) -> None:
        """Drop what is remembered of jobs that have not been routed for a day."""
        ...


class Asker(Protocol):
    """Asks an executor before it is chosen. It never raises: what the network does is in the answer.

    ACCEPTED means yes, every other kind no. Connecting takes the send time-out at most, and
    the answer as long again.
    """

    async def beat(self, candidate: Candidate) -> Answer:
        """Is it alive?"""
        ...

    async def idle_beat(self, job_id: JobId, candidate: Candidate) -> Answer:
        """Does no run of this job run or wait there?"""
        ...

    @property
    def is_late(self) -> bool:
        """Whether asking has taken so long that nobody else is asked for this run."""
        ...


class Chosen(msgspec.Struct, frozen=True):
    """What asking led to.

    `candidates`: the one that said yes, then those that were not asked; empty if none said yes. `asked`: each address
    that was asked, in this order, with its answer. `not_asked`: how many were not, since asking took too long.
    """

    candidates: Sequence[Candidate]
    asked: Sequence[tuple[str, Answer]]
    not_asked: int = 0


class ProbingRouter(Protocol):
    """Asks a group's live addresses, in the list's order, which of them gets a run."""

    async def choose(self, job_id: JobId, candidates: Sequence[Candidate], ask: Asker) -> Chosen:
        """The first that says yes. May be called for many runs at once; nothing is remembered between them."""
        ...


class UnknownStrategyError(Exception):
    """A stored job names a strategy that does not exist."""

    def __init__(self, strategy: str, known: Sequence[str]) -> None:
        self.strategy = strategy
        self.known = tuple(known)
        super().__init__(f"route strategy {strategy!r} is not one of {', '.join(known)}")
