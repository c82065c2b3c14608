"""What the engine says of itself, for health and metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from jobwheel.admin.domain.run import Outcome


@dataclass(frozen=True, slots=True)
class HealthReason:
    """Why the admin is not healthy: a stable code, and a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """One lane: sends under way, the most that there may be, runs that wait for a slot."""

    name: str
    in_use: int
    limit: int
    waiting: int


@dataclass(frozen=True, slots=True)
class LatenessFigures:
    """How late runs were sent, since the start.

    Attributes:
        upper_bounds_s: the upper bound of each bucket but the last, ascending; the last one has none.
        counts: how many runs fell into each bucket by itself; one more than `upper_bounds_s`.
        sum_s: the sum of all latenesses.
    """

    upper_bounds_s: tuple[float, ...] = ()
    counts: tuple[int, ...] = (0,)
    sum_s: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """One look at the engine. Totals count from the start of the process.

    Attributes:
        last_pass_age_s: since the last successful scheduling pass; None before the first.
        clock_difference_s: this host's clock minus the database's.
        outcomes: runs that ended, by outcome.
    """

    passes: int = 0
    failed_passes: int = 0
    last_pass_age_s: float | None = None
    wheel_size: int = 0
    lanes: tuple[LaneFigures, ...] = ()
    sends_in_flight: int = 0
    runs_sent: int = 0
    clock_difference_s: float = 0.0
    lateness: LatenessFigures = field(default_factory=LatenessFigures)
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)


class EngineStatus(Protocol):
    """Read by `/health` and `/metrics`, from the event loop, at any time; must not wait for anything."""

    def reasons(self) -> Sequence[HealthReason]:
        """Why the engine is not healthy; empty = healthy."""
        ...

    def collect(self) -> EngineFigures:
        """The figures of this moment."""
        ...
