"""Runs that are due at once, and how they end."""

from collections.abc import Sequence

from sqlalchemy import func, select

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Run
from jobwheel.admin.store import runs
from jobwheel.admin.store.tables import job_log
from tests.support.live_admin import CLOCK, DEADLINE_S, LiveAdmin, seen
from tests.support.store import new_run


async def write_due(live: LiveAdmin, job: Job, count: int, parameter: str = "day=1") -> list[RunId]:
    """Pending runs of this node that are due at once, all in one instant."""
    run = new_run(live.admin.engine.node_id, CLOCK.now() - 100, job_id=job.id, parameter=parameter)
    written = await live.admin.database.write(runs.insert_runs, live.admin.installation.zone, [run] * count)
    live.admin.engine.fly(written)
    return [each.id for each in written]


async def all_done(live: LiveAdmin, job: Job, within_s: float = DEADLINE_S) -> Sequence[Run]:
    """The job's runs, once all of them are done."""
    still_open = select(func.count()).where(job_log.c.job_id == job.id, job_log.c.phase.is_not(None))

    async def look() -> bool:
        # Counted: the runs themselves may be megabytes, whose reading would be most of the test.
        count = await live.admin.database.read(lambda c: c.execute(still_open).scalar_one())
        return not count

    await seen(look, within_s)
    return await live.runs(job)
