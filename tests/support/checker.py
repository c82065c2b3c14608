"""Judges a log of starts: is every planned instant exactly one execution, or part of a recorded misfire?"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """An execution began: of which job and run, planned for when, and when it did (epoch milliseconds)."""

    job_id: int
    log_id: int
    planned_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class MisfireRecord:
    """What the admin recorded of instants that it missed, both ends included."""

    job_id: int
    count: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a log; each entry is (job, planned time)."""

    missing: Sequence[tuple[int, int]]
    doubled: Sequence[tuple[int, int]]
    unplanned: Sequence[tuple[int, int]]
    early: Sequence[tuple[int, int]]
    miscounted: Sequence[MisfireRecord]
    executed: int
    misfired: int

    @property
    def good(self) -> bool:
        return not (self.missing or self.doubled or self.unplanned or self.early or self.miscounted)


def judge(
    planned: Iterable[tuple[int, int]],
    starts: Sequence[Start],
    misfires: Sequence[MisfireRecord],
    excused: Iterable[tuple[int, int]] = (),
) -> Verdict:
    """Match every planned (job, instant) with the starts and the misfires of jobs whose policy is DO_NOTHING.

    An instant that is `excused` may have no execution, but not two. Starts of later instants than are planned are
    looked at for doubles alone.
    """
    wanted = set(planned)
    last_ms = max((instant for _, instant in wanted), default=0)
    executed = Counter((start.job_id, start.planned_ms) for start in starts)
    missed = Counter(
        key for misfire in misfires for key in wanted if key[0] == misfire.job_id and _covers(misfire, key[1])
    )
    allowed = set(excused)
    return Verdict(
        missing=sorted(key for key in wanted if not executed[key] and not missed[key] and key not in allowed),
        doubled=sorted(key for key in executed.keys() | missed.keys() if executed[key] + missed[key] > 1),
        unplanned=sorted(key for key in executed if key not in wanted and key[1] <= last_ms),
        early=sorted((start.job_id, start.planned_ms) for start in starts if start.at_ms < start.planned_ms),
        miscounted=[each for each in misfires if _instants(each, wanted) != each.count and each.last_ms <= last_ms],
        executed=sum(executed[key] for key in wanted),
        misfired=sum(missed.values()),
    )


def _covers(misfire: MisfireRecord, instant: int) -> bool:
    return misfire.first_ms <= instant <= misfire.last_ms


def _instants(misfire: MisfireRecord, wanted: set[tuple[int, int]]) -> int:
    return sum(job_id == misfire.job_id and _covers(misfire, instant) for job_id, instant in wanted)
