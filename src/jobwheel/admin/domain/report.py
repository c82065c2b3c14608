"""What is counted of the run log: runs by day and group, and how late and how long those of a job were."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Final

from jobwheel.admin.domain.histogram import Histogram
from jobwheel.admin.domain.ids import GroupId, JobId

SLICE: Final = timedelta(minutes=10)
"""The run log is counted in slices of so much wall time: what cannot change any more is not read again."""


NO_JOB: Final = JobId(0)
"""Less than the id of any job."""


@dataclass(frozen=True, slots=True)
class RunCounts:
    """Runs by state, as the reference reads it from the codes (`storage.md`)."""

    running: int = 0
    succeeded: int = 0
    failed: int = 0

    def __add__(self, other: "RunCounts") -> "RunCounts":
        return RunCounts(self.running + other.running, self.succeeded + other.succeeded, self.failed + other.failed)

    def at_least(self, other: "RunCounts") -> "RunCounts":
        """These counts, but of runs that have ended no less than the other one has."""
        if self.succeeded + self.failed >= other.succeeded + other.failed:
            return self
        return RunCounts(self.running, max(self.succeeded, other.succeeded), max(self.failed, other.failed))

    @property
    def total(self) -> int:
        return self.running + self.succeeded + self.failed


GroupCounts = Mapping[GroupId, RunCounts]


@dataclass(frozen=True, slots=True)
class Slice:
    """What was counted of a slice, and when; settled = no run in it is open, and its time is over.

    Attributes:
        counted_ms: 0 = it is to be counted anew.
        lost: how many of its runs were lost, and might still get their result.
        recounts: how often it was to be counted anew.
        settled_job: while it is being settled, up to which job its runs are in the statistics.
    """

    counted_ms: int
    is_settled: bool
    counts: GroupCounts
    lost: int = 0
    recounts: int = 0
    settled_job: JobId = NO_JOB

    def is_settled_for(self, job_id: JobId) -> bool:
        """Whether the job's runs are in its statistics."""
        return self.is_settled or job_id <= self.settled_job

    @property
    def total(self) -> RunCounts:
        return sum(self.counts.values(), RunCounts())


@dataclass(frozen=True, slots=True)
class DayCounts:
    """A day's runs, in wall time of the installation's zone."""

    day: date
    groups: GroupCounts

    @property
    def total(self) -> RunCounts:
        return sum(self.groups.values(), RunCounts())


@dataclass(slots=True)
class RunStatistics:
    """How runs of a job ended, how late they were sent, and how long those took that their executor ended."""

    group_id: GroupId
    outcomes: dict[str, int] = field(default_factory=dict)
    lateness: Histogram = field(default_factory=Histogram)
    duration: Histogram = field(default_factory=Histogram)

    @property
    def count(self) -> int:
        """How many runs have ended."""
        return sum(self.outcomes.values())

    def merge(self, other: "RunStatistics") -> None:
        """Add the runs of another one."""
        for outcome, count in other.outcomes.items():
            self.outcomes[outcome] = self.outcomes.get(outcome, 0) + count
        self.lateness.merge(other.lateness)
        self.duration.merge(other.duration)


def slices_between(from_wall: datetime, until_wall: datetime) -> list[datetime]:
    """The beginnings of the slices from one wall time, itself a beginning, to before another."""
    return [from_wall + n * SLICE for n in range(-((from_wall - until_wall) // SLICE))]


def day_start(day: date) -> datetime:
    """00:00 of a day, as wall time."""
    return datetime(day.year, day.month, day.day)  # noqa: DTZ001 - wall time of the installation
