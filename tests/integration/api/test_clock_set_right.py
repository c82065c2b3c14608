"""A host's clock ran far ahead and was set right: what was planned by it does not keep a job from running for long."""

import pytest

from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import answer, change_run, make_job, patch_job, pending_planned, plan

NEXT_MS = NOW_MS - 250 + 5_000
YEAR_MS = 365 * 24 * 3_600_000


@pytest.mark.parametrize("change", ["start", "parameter", "schedule"])
async def test_a_start_or_an_edit_plans_by_the_right_clock(admin: AdminHarness, change: str) -> None:
    job_id = (await make_job(admin, running=True))["id"]
    far_ms = NEXT_MS + YEAR_MS
    run_ids = await plan(admin, job_id, far_ms, far_ms + 5000, next_ms=far_ms + 10_000)
    await change_run(admin, run_ids[0], phase="accepted")
    if change == "start":
        await admin.client.post(f"/api/v1/jobs/{job_id}/stop")
        job = answer(await admin.client.post(f"/api/v1/jobs/{job_id}/start"))
    elif change == "parameter":
        job = await patch_job(admin, job_id, parameter="new")
    else:
        job = await patch_job(admin, job_id, schedule_conf="5 * * * * ?")
    assert job["next_planned_at"] == "2026-11-27T02:30:05.000Z"
    assert await pending_planned(admin, job_id) == []


async def test_an_hour_is_not_planned_again(admin: AdminHarness) -> None:
    job_id = (await make_job(admin, running=True))["id"]
    ahead_ms = NEXT_MS + 3_600_000
    run_ids = await plan(admin, job_id, ahead_ms, next_ms=ahead_ms + 5_000)
    await change_run(admin, run_ids[0], phase="accepted")
    await admin.client.post(f"/api/v1/jobs/{job_id}/stop")
    job = answer(await admin.client.post(f"/api/v1/jobs/{job_id}/start"))
    assert job["next_planned_at"] == "2026-11-27T03:30:10.000Z"
