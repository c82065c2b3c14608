"""What the engine says of itself, for health and metrics."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jobwheel.admin.domain.group import ExecutorLoad
from jobwheel.admin.domain.run import Outcome


@dataclass(frozen=True, slots=True)
class HealthReason:
    """Why the admin is not healthy: a stable code, and a sentence for people."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """One lane: sends under way, the most that there may be, runs that wait for a slot or to be looked at."""

    name: str
    in_use: int
    limit: int
    waiting: int


@dataclass(frozen=True, slots=True)
class ExecutorFigures:
    """A live executor of ours, as its last beat told."""

    app_name: str
    address: str
    load: ExecutorLoad


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
        parked: runs that came due and wait until their executor has room.
        left_in_database: runs that came due and wait there until there is room for them.
        sends_in_flight: runs that took off and have no answer yet.
        clock_difference_s: this host's clock minus the database's.
        outcomes: runs that ended, by outcome.
    """

    passes: int = 0
    failed_passes: int = 0
    last_pass_age_s: float | None = None
    wheel_size: int = 0
    lanes: tuple[LaneFigures, ...] = ()
    parked: int = 0
    left_in_database: int = 0
    sends_in_flight: int = 0
    runs_sent: int = 0
    clock_difference_s: float = 0.0
    lateness: LatenessFigures = field(default_factory=LatenessFigures)
    outcomes: Mapping[Outcome, int] = field(default_factory=dict)
    executors: tuple[ExecutorFigures, ...] = ()


_LATENESS_BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Counters:
    """Totals since the start of the process. Belongs to the engine's loop."""

    def __init__(self) -> None:
        self.runs_sent = 0
        self.outcomes: Counter[Outcome] = Counter()
        self._late_counts = [0] * (len(_LATENESS_BOUNDS_S) + 1)
        self._late_sum_s = 0.0

    def sent(self, lateness_s: float) -> None:
        """A run was handed to the wire so long after its due time."""
        self.runs_sent += 1
        self._late_counts[bisect_left(_LATENESS_BOUNDS_S, lateness_s)] += 1
        self._late_sum_s += lateness_s

    def ended(self, outcomes: Iterable[Outcome]) -> None:
        self.outcomes.update(outcomes)

    def lateness(self) -> LatenessFigures:
        return LatenessFigures(_LATENESS_BOUNDS_S, tuple(self._late_counts), self._late_sum_s)
