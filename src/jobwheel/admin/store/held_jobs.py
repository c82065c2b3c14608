"""The job rows that a transaction of the run log holds: before any of the runs, and all in the order of their ids.

Of two nodes that end runs of a job at once, the second must see what the first has written. In one order, or two nodes
that hold the same jobs would wait for each other (see the lock order of `storage.md`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, Row, exists, or_, select

from jobwheel.admin.domain.ids import GroupId, JobId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.job_children import HAS_CHILDREN, read_children
from jobwheel.admin.store.tables import job_info, job_log

_LIMITED = job_info.c.run_limit.is_not(None)
_RUNS_AFTER_END = (job_info.c.schedule_type == "FIX_DELAY") & (job_info.c.trigger_status == 1)
_AWAITING = _RUNS_AFTER_END & (job_info.c.trigger_next_time == AWAITING_SETTLEMENT_MS)
# Made once: it is asked with each batch of results, and to make a statement costs more than to run this one.
_IS_THERE_ANY = select(exists().where(_LIMITED), exists().where(_AWAITING), exists().where(HAS_CHILDREN))


@dataclass(frozen=True, slots=True)
class HeldChild:
    """A job that is to run as a child; with `waits_for_end` its schedule waits for the end of that run."""

    id: JobId
    group_id: GroupId
    parameter: str
    waits_for_end: bool


@dataclass(slots=True)
class HeldJobs:
    """Jobs that are held until the transaction ends.

    Attributes:
        limits: those with a limit, and how many of their runs may be under way.
        awaiting: those of FIX_DELAY whose next time is counted from the end of a run.
        children: of those of which a run succeeds, the ids of their children.
        child_jobs: these children, as far as they exist.
    """

    limits: dict[JobId, int] = field(default_factory=dict)
    awaiting: set[JobId] = field(default_factory=set)
    children: dict[JobId, tuple[JobId, ...]] = field(default_factory=dict)
    child_jobs: dict[JobId, HeldChild] = field(default_factory=dict)


def hold_limited(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, int]:
    """Hold those of the jobs that have a limit; return their limits."""
    return _hold(connection, job_ids, _LIMITED).limits


def hold_jobs_of(connection: Connection, run_ids: Sequence[RunId], succeeding: Sequence[RunId] = ()) -> HeldJobs:
    """Hold those jobs of the runs for which the end of a run means something, and the children of those that succeed.

    Mostly there is none in the whole installation, which indexes tell, and the runs are not looked at.
    """
    if not run_ids:
        return HeldJobs()
    any_limited, any_awaiting, any_parent = connection.execute(_IS_THERE_ANY).one()
    found: set[JobId] = set()
    if any_limited or any_awaiting:
        found = {JobId(row.id) for row in _jobs_of(connection, run_ids, or_(_LIMITED, _AWAITING))}
    parents = _jobs_of(connection, succeeding, HAS_CHILDREN) if any_parent and succeeding else ()
    children = {JobId(row.id): each for row in parents if (each := read_children(row.child_jobid))}
    # A parent as well: of two runs of its chain that end at once, the second must see what the first has started.
    family = children.keys() | {child for each in children.values() for child in each}
    if not found and not family:
        return HeldJobs()
    held = _hold(connection, found | family, or_(_LIMITED, _AWAITING, job_info.c.id.in_(sorted(family))))
    held.children = {job_id: each for job_id, each in children.items() if job_id in held.child_jobs}
    return held


def _jobs_of(
    connection: Connection, run_ids: Sequence[RunId], which: ColumnElement[bool]
) -> Sequence[Row[tuple[int, str | None]]]:
    theirs = statements(connection).by_index(select(job_log.c.job_id), job_log, PRIMARY_KEY)
    jobs = select(job_info.c.id, job_info.c.child_jobid).where(
        job_info.c.id.in_(theirs.where(job_log.c.id.in_(run_ids))), which
    )
    return connection.execute(statements(connection).by_index(jobs, job_info, PRIMARY_KEY)).all()


def _hold(connection: Connection, job_ids: Collection[int], which: ColumnElement[bool]) -> HeldJobs:
    chosen = (
        select(
            job_info.c.id,
            job_info.c.job_group,
            job_info.c.executor_param,
            job_info.c.run_limit,
            _AWAITING.label("is_awaiting"),
            _RUNS_AFTER_END.label("waits_for_end"),
        )
        .where(job_info.c.id.in_(list(job_ids)), which)
        .order_by(job_info.c.id)
        .with_for_update()
    )
    held = HeldJobs()
    # By their ids alone: whatever else is read is held as well, and in another order.
    for row in connection.execute(statements(connection).by_index(chosen, job_info, PRIMARY_KEY)):
        job_id = JobId(row.id)
        # What is no limit (below one, or in SQLite a text) has come from elsewhere, and would hold runs for ever.
        if isinstance(row.run_limit, int) and row.run_limit > 0:
            held.limits[job_id] = row.run_limit
        if row.is_awaiting:
            held.awaiting.add(job_id)
        child = HeldChild(job_id, GroupId(row.job_group), row.executor_param or "", bool(row.waits_for_end))
        held.child_jobs[job_id] = child
    return held
