"""The job rows that a transaction of the run log holds: before any of the runs, and all in the order of their ids.

Of two nodes that end runs of a job at once, the second must see what the first has written. In one order, or two nodes
that hold the same jobs would wait for each other (see the lock order of `storage.md`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import ColumnElement, Connection, exists, or_, select

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from jobwheel.admin.store.dialects import statements
from jobwheel.admin.store.dialects.base import PRIMARY_KEY
from jobwheel.admin.store.tables import job_info, job_log

_LIMITED = job_info.c.run_limit.is_not(None)
_AWAITING = (
    (job_info.c.schedule_type == "FIX_DELAY")
    & (job_info.c.trigger_status == 1)
    & (job_info.c.trigger_next_time == AWAITING_SETTLEMENT_MS)
)
# Made once: it is asked with each batch of results, and to make a statement costs more than to run this one.
_IS_THERE_ANY = select(exists().where(_LIMITED), exists().where(_AWAITING))


@dataclass(slots=True)
class HeldJobs:
    """Jobs that are held until the transaction ends.

    Attributes:
        limits: those with a limit, and how many of their runs may be under way.
        awaiting: those of FIX_DELAY whose next time is counted from the end of a run.
    """

    limits: dict[JobId, int] = field(default_factory=dict)
    awaiting: set[JobId] = field(default_factory=set)


def hold_limited(connection: Connection, job_ids: Collection[JobId]) -> dict[JobId, int]:
    """Hold those of the jobs that have a limit; return their limits."""
    return _hold(connection, job_ids, _LIMITED).limits


def hold_jobs_of(connection: Connection, run_ids: Sequence[RunId]) -> HeldJobs:
    """Hold those jobs of the runs for which the end of a run means something.

    Mostly there is none in the whole installation, which indexes tell, and the runs are not looked at.
    """
    if not run_ids or not any(connection.execute(_IS_THERE_ANY).one()):
        return HeldJobs()
    theirs = statements(connection).by_index(select(job_log.c.job_id), job_log, PRIMARY_KEY)
    jobs = select(job_info.c.id).where(
        job_info.c.id.in_(theirs.where(job_log.c.id.in_(run_ids))), or_(_LIMITED, _AWAITING)
    )
    found = connection.execute(statements(connection).by_index(jobs, job_info, PRIMARY_KEY)).scalars().all()
    return _hold(connection, found, or_(_LIMITED, _AWAITING)) if found else HeldJobs()


def _hold(connection: Connection, job_ids: Collection[int], which: ColumnElement[bool]) -> HeldJobs:
    chosen = (
        select(job_info.c.id, job_info.c.run_limit, _AWAITING.label("is_awaiting"))
        .where(job_info.c.id.in_(list(job_ids)), which)
        .order_by(job_info.c.id)
        .with_for_update()
    )
    held = HeldJobs()
    # By their ids alone: whatever else is read is held as well, and in another order.
    for row in connection.execute(statements(connection).by_index(chosen, job_info, PRIMARY_KEY)):
        # What is no limit (below one, or in SQLite a text) has come from elsewhere, and would hold runs for ever.
        if isinstance(row.run_limit, int) and row.run_limit > 0:
            held.limits[JobId(row.id)] = row.run_limit
        if row.is_awaiting:
            held.awaiting.add(JobId(row.id))
    return held
