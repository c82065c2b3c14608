"""Jobs of fixed delay in a cluster under faults: each next time hangs on the end of a run, and one end that is not
counted on silences the job for ever."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.policies import AWAITING_SETTLEMENT_MS
from tests.support.cluster import Cluster
from tests.support.scene import CLOCK, read_admin, read_starts

DELAY_MS: Final = 1000
GOES_ON_WITHIN_S: Final = 10.0
"""So soon after everything has ended each of them begins a new run: its delay, a pass, and a machine that is busy."""

# One statement, so one moment: the end of a run and the job's next time are one transaction.
_SILENT: Final = (
    "SELECT id FROM xxl_job_info "
    f"WHERE schedule_type = 'FIX_DELAY' AND trigger_status = 1 AND trigger_next_time = {AWAITING_SETTLEMENT_MS} "
    "AND NOT EXISTS (SELECT 1 FROM xxl_job_log WHERE job_id = xxl_job_info.id AND phase IS NOT NULL)"
)


async def faults_of_delayed(cluster: Cluster, since_ms: int) -> list[str]:
    """What is wrong with the jobs of fixed delay once every run planned before now has ended, a line for each fault.

    Of what was planned from `since_ms` on no two runs may be nearer than the delay.
    """
    async with cluster.connected() as connection:
        silent = (await connection.exec_driver_sql(_SILENT)).scalars().all()
    found = [f"job {job_id} waits for the end of a run and has none" for job_id in silent]
    found += [f"job {job_id} has begun no run within {GOES_ON_WITHIN_S} s" for job_id in await _idle(cluster)]
    for job_id in cluster.delayed:
        _, runs = await read_admin(cluster.scene, [job_id], since_ms)
        near = too_near([run.planned_ms or 0 for run in runs])
        found += [f"job {job_id} has runs nearer than its delay: {near[:10]}"] if near else []
    return found


async def _idle(cluster: Cluster) -> list[JobId]:
    """Those that begin no run for so long, counted from now."""
    now_ms = CLOCK.now()
    until_s = CLOCK.monotonic() + GOES_ON_WITHIN_S
    idle = cluster.delayed
    while idle and CLOCK.monotonic() < until_s:
        await CLOCK.wait(0.1)
        starts = await asyncio.to_thread(read_starts, cluster.scene.starts_path)
        begun = {start.job_id for start in starts if start.at_ms > now_ms}
        idle = [job_id for job_id in idle if job_id not in begun]
    return idle


def too_near(planned_ms: Sequence[int]) -> list[tuple[int, int]]:
    """Neighbours in time that are less than the delay apart."""
    return [(one, next_one) for one, next_one in pairwise(sorted(planned_ms)) if next_one - one < DELAY_MS]
