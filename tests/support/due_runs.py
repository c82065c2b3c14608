"""Runs that are due at once, and how they end."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.job import Job
from jobwheel.admin.domain.run import Run
from jobwheel.admin.store import runs
from tests.support.live_admin import CLOCK, LiveAdmin, seen
from tests.support.store import new_run


async def write_due(live: LiveAdmin, job: Job, count: int, parameter: str = "day=1") -> list[RunId]:
    """Pending runs of this node that are due at once, all in one instant."""
    run = new_run(live.admin.engine.node_id, CLOCK.now() - 100, job_id=job.id, parameter=parameter)
    written = await live.admin.database.write(runs.insert_runs, live.admin.installation.zone, [run] * count)
    live.admin.engine.fly(written)
    return [each.id for each in written]


async def all_done(live: LiveAdmin, job: Job) -> Sequence[Run]:
    async def look() -> Sequence[Run] | None:
        found = await live.runs(job)
        return found if all(run.phase is None for run in found) else None

    return await seen(look)
