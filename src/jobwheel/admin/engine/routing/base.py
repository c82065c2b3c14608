"""What a strategy is."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from jobwheel.admin.domain.ids import JobId

Candidate = TypeVar("Candidate")


class Router(Protocol):
    """Orders a group's live addresses for one run of a job. Called by the engine's loop, once for each run."""

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        """The candidates, the chosen one first, then in the order in which they are to be tried.

        `candidates` is sorted and not empty; the answer holds each of them once.
        """
        ...

    def forget_unused(self, now_ms: int) -> None:
        """Drop what is remembered of jobs that have not been routed for a day."""
        ...


class Chosen(msgspec.Struct, frozen=True):
    """Stub."""

    candidates: Sequence[Any]
    asked: Sequence[tuple[str, Any]]


class UnknownStrategyError(Exception):
    """A stored job names a strategy that does not exist, or not yet."""

    def __init__(self, strategy: str, known: Sequence[str]) -> None:
        super().__init__(f"route strategy {strategy!r} is not one of {', '.join(known)}")
