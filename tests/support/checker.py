"""Judges a log of starts: is every planned instant exactly one execution, a recorded misfire, or a stated failure?"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

Instant = tuple[int, int]
"""(job, planned time in epoch milliseconds)."""


@dataclass(frozen=True, slots=True)
class Start:
    """An execution began: of which job and run, planned for when, and when it did (epoch milliseconds)."""

    job_id: int
    log_id: int
    planned_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class MisfireRecord:
    """What the admin recorded of instants that it missed, both ends included.

    The newest `made_up` of them were to run after all (FIRE_ONCE_NOW, FIRE_ALL): they count as planned ones.
    """

    job_id: int
    count: int
    first_ms: int
    last_ms: int
    made_up: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a log, and what is in it.

    Attributes:
        missing: neither executed nor recorded as missed, and no run says why: lost.
        doubled: executed twice, or executed though it was recorded as missed, or recorded twice.
        rewritten: more than one row was written for it, whatever became of them.
        repeated: log ids of which more than one execution began.
        unplanned: executed, and nobody had planned it.
        early: begun before the planned time.
        miscounted: misfires whose number is not that of the instants between their ends.
        planned: how many instants there were.
        executed: how many executions of them.
        misfired: how many of them were recorded as missed and were not to run.
        failed: how many of them have no execution, and a run that says why.
        open: how many of them have a run that has not ended, whether it began (then it is executed, too) or not.
        latest_ms: of the first executions, how long after its planned time the latest began.
    """

    missing: Sequence[Instant]
    doubled: Sequence[Instant]
    rewritten: Sequence[Instant]
    repeated: Sequence[int]
    unplanned: Sequence[Instant]
    early: Sequence[Instant]
    miscounted: Sequence[MisfireRecord]
    planned: int
    executed: int
    misfired: int
    failed: int
    open: int
    latest_ms: int

    @property
    def good(self) -> bool:
        return not self.faults

    @property
    def faults(self) -> dict[str, Sequence[object]]:
        """What is wrong, by name; nothing if all is well."""
        found: dict[str, Sequence[object]] = {
            "missing": self.missing,
            "doubled": self.doubled,
            "rewritten": self.rewritten,
            "repeated": self.repeated,
            "unplanned": self.unplanned,
            "early": self.early,
            "miscounted": self.miscounted,
        }
        return {name: each for name, each in found.items() if each}

    @property
    def figures(self) -> dict[str, int]:
        """The figures of a row, in their order; a row or an execution too many counts as doubled."""
        return {
            "planned": self.planned,
            "executed": self.executed,
            "misfired": self.misfired,
            "failed": self.failed,
            "open": self.open,
            "lost": len(self.missing),
            "doubled": max(len(self.doubled), len(self.rewritten), len(self.repeated)),
            "latest_ms": self.latest_ms,
        }

    def __str__(self) -> str:
        """One line: the figures, then what is wrong (the first ten of each kind)."""
        said = [f"{name} {figure}" for name, figure in self.figures.items()]
        wrong = [f"{name.upper()} {list(each)[:10]}" for name, each in self.faults.items()]
        return ", ".join([*said, *wrong])


def judge(
    planned: Iterable[Instant],
    starts: Sequence[Start],
    misfires: Sequence[MisfireRecord],
    excused: Iterable[Instant] = (),
    rows: Iterable[Instant] = (),
    left_open: Iterable[Instant] = (),
) -> Verdict:
    """Match every planned (job, instant) with the starts of first attempts and with the misfires.

    An instant that is `excused` (its run failed and says why) or was `left_open` (its run has not ended, as the fault
    will have it) may have no execution, but not two. Starts of later
    instants than are planned are looked at for doubles alone. The number of a misfire that reaches beyond what is
    planned, at either end, is not looked at. `rows` has an instant for each run that the schedule caused.
    """
    wanted = set(planned)
    first_ms = min((instant for _, instant in wanted), default=0)
    last_ms = max((instant for _, instant in wanted), default=0)
    executed = Counter((start.job_id, start.planned_ms) for start in starts)
    covered = [(misfire, _covered(misfire, wanted)) for misfire in misfires]
    missed = Counter(key for misfire, keys in covered for key in keys[: max(0, len(keys) - misfire.made_up)])
    recorded = Counter(key for _, keys in covered for key in keys)
    idle = {key for key in wanted if not executed[key] and not missed[key]}
    allowed = set(excused)
    waiting = wanted & set(left_open)
    return Verdict(
        missing=sorted(idle - allowed - waiting),
        doubled=sorted(
            key for key in executed.keys() | recorded.keys() if max(executed[key] + missed[key], recorded[key]) > 1
        ),
        rewritten=sorted(key for key, times in Counter(rows).items() if times > 1),
        repeated=sorted(log_id for log_id, times in Counter(each.log_id for each in starts).items() if times > 1),
        unplanned=sorted(key for key in executed if key not in wanted and key[1] <= last_ms),
        early=sorted((start.job_id, start.planned_ms) for start in starts if start.at_ms < start.planned_ms),
        miscounted=[
            misfire
            for misfire, keys in covered
            if len(keys) != misfire.count and first_ms <= misfire.first_ms and misfire.last_ms <= last_ms
        ],
        planned=len(wanted),
        executed=sum(executed[key] for key in wanted),
        misfired=sum(missed.values()),
        failed=len(idle & allowed),
        open=len(waiting),
        latest_ms=_latest_ms(wanted, starts),
    )


def _covered(misfire: MisfireRecord, wanted: Collection[Instant]) -> list[Instant]:
    """The planned instants between the misfire's ends, oldest first."""
    return sorted(
        (job_id, instant)
        for job_id, instant in wanted
        if job_id == misfire.job_id and misfire.first_ms <= instant <= misfire.last_ms
    )


def _latest_ms(wanted: Collection[Instant], starts: Iterable[Start]) -> int:
    first: dict[Instant, int] = {}
    for start in starts:
        key = (start.job_id, start.planned_ms)
        if key in wanted:
            first[key] = min(first.get(key, start.at_ms), start.at_ms)
    return max((at_ms - key[1] for key, at_ms in first.items()), default=0)
