"""Whether every planned instant was run, and none of them twice: pure functions of what was seen."""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jobwheel.cli.demo.sample_jobs import WatchedJob


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as the admin tells it; times are epoch milliseconds. `by_schedule`: its cause is the job's schedule."""

    id: int
    job_id: int
    planned_ms: int
    due_ms: int
    sent_ms: int | None
    outcome: str | None
    by_schedule: bool


@dataclass(frozen=True, slots=True)
class Span:
    """Planned instants that are recorded as missed, both ends included; epoch milliseconds."""

    from_ms: int
    until_ms: int

    def holds(self, instant_ms: int) -> bool:
        return self.from_ms <= instant_ms <= self.until_ms


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that is judged.

    Attributes:
        runs: of all watched jobs, planned up to `end_ms`.
        misfires: by job.
        executions: how often the executor began each run.
        end_ms: the last instant that counts.
    """

    runs: Sequence[SeenRun]
    misfires: Mapping[int, Sequence[Span]]
    executions: Mapping[int, int]
    end_ms: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The counts; lateness is how long after its due time a run was sent.

    `planned` = instants that the schedules name: each is one of succeeded, failed, unfinished, misfired, missing.
    `doubled` counts instants with several runs and runs that were executed several times, `unplanned` runs at
    instants that no schedule names, `runs` all runs of the demo's jobs.
    """

    planned: int
    succeeded: int
    failed: int
    unfinished: int
    misfired: int
    missing: int
    doubled: int
    unplanned: int
    runs: int
    lateness_p50_ms: int | None
    lateness_p99_ms: int | None

    @property
    def clean(self) -> bool:
        """Nothing missing, nothing twice; and something was seen to work, since an empty demo proves nothing."""
        return not (self.missing or self.doubled or self.unplanned) and self.succeeded > 0


def judge(jobs: Collection[WatchedJob], seen: Seen) -> Verdict:
    """Compare what was planned with what was seen."""
    counts: Counter[str] = Counter()
    for job in jobs:
        if job.schedule is not None:
            counts.update(_judge_job(job, seen))
    twice = sum(1 for run in seen.runs if seen.executions.get(run.id, 0) > 1)
    late = sorted(run.sent_ms - run.due_ms for run in seen.runs if run.sent_ms is not None)
    return Verdict(
        planned=counts["planned"],
        succeeded=counts["succeeded"],
        failed=counts["failed"],
        unfinished=counts["unfinished"],
        misfired=counts["misfired"],
        missing=counts["missing"],
        doubled=counts["doubled"] + twice,
        unplanned=counts["unplanned"],
        runs=len(seen.runs),
        lateness_p50_ms=percentile(late, 0.5),
        lateness_p99_ms=percentile(late, 0.99),
    )


def percentile(ordered: Sequence[int], share: float) -> int | None:
    """The value that `share` of the values do not exceed (nearest rank); None of nothing."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _judge_job(job: WatchedJob, seen: Seen) -> Counter[str]:
    runs: defaultdict[int, list[SeenRun]] = defaultdict(list)
    for run in seen.runs:
        if run.job_id == job.id and run.by_schedule:
            runs[run.planned_ms].append(run)
    instants = _instants(job, seen.end_ms)
    misfires = seen.misfires.get(job.id, ())
    counts: Counter[str] = Counter(planned=len(instants))
    for instant in instants:
        at_instant = runs.pop(instant, [])
        if at_instant:
            counts[_result(at_instant[0])] += 1
            counts["doubled"] += len(at_instant) > 1
        elif any(span.holds(instant) for span in misfires):
            counts["misfired"] += 1
        else:
            counts["missing"] += 1
    # What ran before the first instant belongs to an earlier demo.
    counts["unplanned"] = sum(len(rest) for planned_ms, rest in runs.items() if planned_ms >= (job.first_ms or 0))
    return counts


def _instants(job: WatchedJob, end_ms: int) -> list[int]:
    assert job.schedule is not None
    instants: list[int] = []
    instant: int | None = job.first_ms
    while instant is not None and instant <= end_ms:
        instants.append(instant)
        instant = job.schedule.next_after(instant)
    return instants


def _result(run: SeenRun) -> str:
    if run.outcome is None:
        return "unfinished"
    return "succeeded" if run.outcome == "succeeded" else "failed"
