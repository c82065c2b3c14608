"""Runs by what they were made for: a planned time of a job, with all its attempts and shards."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.run import Outcome, Phase
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.tables import job_log

_SLICE = 1000
_BY_TIME = "jobwheel_log_job_planned"
_COLUMNS = (
    job_log.c.id,
    job_log.c.job_id,
    job_log.c.job_group,
    job_log.c.planned_ms,
    job_log.c.executor_param,
    job_log.c.phase,
    job_log.c.outcome,
    job_log.c.first_run_id,
    job_log.c.broadcast_id,
)


@dataclass(frozen=True, slots=True)
class ChainRun:
    """A run, and the chain that it is of: all attempts and shards of one planned time have one `chain`."""

    id: RunId
    job_id: JobId
    group_id: GroupId
    planned_ms: int | None
    parameter: str
    is_open: bool
    succeeded: bool
    chain: RunId


def load_chain_runs(connection: Connection, run_ids: Collection[RunId]) -> dict[RunId, ChainRun]:
    """These runs; those that are gone are not in the answer."""
    found = {}
    for ids in _slices(sorted(set(run_ids))):
        for row in connection.execute(select(*_COLUMNS).where(job_log.c.id.in_(ids))):
            found[RunId(row.id)] = _chain_run(row)
    return found


def later_attempts(connection: Connection, runs: Collection[ChainRun]) -> list[ChainRun]:
    """The attempts after the first one that were made for planned times of these runs."""
    found: list[ChainRun] = []
    by_job: dict[JobId, set[int]] = {}
    for run in runs:
        if run.planned_ms is not None:
            by_job.setdefault(run.job_id, set()).add(run.planned_ms)
    for job_id, planned in by_job.items():
        for instants in _slices(sorted(planned)):
            of_job = select(*_COLUMNS).where(
                job_log.c.job_id == job_id, job_log.c.planned_ms.in_(instants), job_log.c.attempt > 1
            )
            of_job = statements(connection).by_index(of_job, job_log, _BY_TIME)
            found += [_chain_run(row) for row in connection.execute(of_job)]
    return found


def planned_in(connection: Connection, job_id: JobId, from_ms: int, until_ms: int) -> set[int]:
    """The planned times of a job from `from_ms` on and before `until_ms` that have a run, from the index alone."""
    query = select(job_log.c.planned_ms).where(
        job_log.c.job_id == job_id, job_log.c.planned_ms >= from_ms, job_log.c.planned_ms < until_ms
    )
    query = statements(connection).by_index(query.distinct(), job_log, _BY_TIME)
    return set(connection.execute(query).scalars())


def _chain_run(row: Row[*tuple[Any, ...]]) -> ChainRun:
    return ChainRun(
        id=RunId(row.id),
        job_id=JobId(row.job_id),
        group_id=GroupId(row.job_group),
        planned_ms=row.planned_ms,
        parameter=row.executor_param or "",
        is_open=row.phase in set(Phase),
        succeeded=row.outcome == Outcome.SUCCEEDED,
        chain=RunId(row.broadcast_id or row.first_run_id or row.id),
    )


def _slices(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(values), _SLICE):
        yield values[first : first + _SLICE]
