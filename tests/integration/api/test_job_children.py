"""Children over REST: kept, and refused with the way if a job would come of itself."""

import asyncio
import itertools

from jobwheel.admin.store import run_log
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import answer, error, make_group, make_job, patch_job, read_events, read_job
from tests.support.followups import STEP_MS, succeeded
from tests.support.store import take_off


async def make_jobs(admin: AdminHarness, count: int) -> tuple[int, list[int]]:
    """A group, and jobs of it: `step 0` and so on."""
    group_id = await make_group(admin)
    return group_id, [(await make_job(admin, group_id, name=f"step {n}"))["id"] for n in range(count)]


async def test_children_are_kept_each_once_and_told_in_the_events(admin: AdminHarness) -> None:
    group_id, (first, second) = await make_jobs(admin, 2)
    job = await make_job(admin, group_id, child_job_ids=[second, first, second])
    assert job["child_job_ids"] == [second, first]
    changed = await patch_job(admin, job["id"], child_job_ids=[first])
    assert changed["child_job_ids"] == [first]
    assert (await patch_job(admin, job["id"], child_job_ids=[]))["child_job_ids"] == []
    after = [event["details"]["after"] for event in await read_events(admin, job["id"]) if "after" in event["details"]]
    assert after == [{"child_job_ids": [first]}, {"child_job_ids": []}]


async def test_a_child_may_be_of_another_group(admin: AdminHarness) -> None:
    child = await make_job(admin, await make_group(admin, "billing"))
    assert (await make_job(admin, child_job_ids=[child["id"]]))["child_job_ids"] == [child["id"]]


async def test_a_job_that_would_come_of_itself_is_refused_with_the_way(admin: AdminHarness) -> None:
    _, ids = await make_jobs(admin, 4)
    for parent, child in itertools.pairwise(ids):
        await patch_job(admin, parent, child_job_ids=[child])
    for last, way in ((0, [0]), (1, [0, 1]), (3, [0, 1, 2, 3])):
        body = {"child_job_ids": [ids[0]]}
        refused = error(await admin.client.patch(f"/api/v1/jobs/{ids[last]}", json=body), 422)
        assert refused["field"] == "child_job_ids"
        told = " \u2192 ".join(f"job {ids[at]} (step {at})" for at in [last, *way[:-1], last])
        assert told in refused["message"]
        assert (await read_job(admin, ids[last]))["version"] == (1 if last < 3 else 0)


async def test_two_edits_at_once_make_no_circle(admin: AdminHarness) -> None:
    _, (first, second) = await make_jobs(admin, 2)
    replies = await asyncio.gather(
        admin.client.patch(f"/api/v1/jobs/{first}", json={"child_job_ids": [second]}),
        admin.client.patch(f"/api/v1/jobs/{second}", json={"child_job_ids": [first]}),
    )
    assert sorted(reply.status_code for reply in replies) == [200, 422]


async def test_an_edit_of_something_else_keeps_a_child_that_is_gone(admin: AdminHarness) -> None:
    group_id, (child,) = await make_jobs(admin, 1)
    job = await make_job(admin, group_id, child_job_ids=[child])
    assert (await admin.client.delete(f"/api/v1/jobs/{child}")).status_code == 204
    changed = await patch_job(admin, job["id"], author="Bob", child_job_ids=[child])
    assert (changed["author"], changed["child_job_ids"]) == ("Bob", [child])


async def test_a_runs_chain_over_rest(admin: AdminHarness) -> None:
    group_id, (child,) = await make_jobs(admin, 1)
    job = await make_job(admin, group_id, child_job_ids=[child])
    run_id = answer(await admin.client.post(f"/api/v1/jobs/{job['id']}/run"), 201)["id"]
    node = admin.scheduler.node_id
    await admin.database.write(run_log.take_off, node, admin.clock.now(), [take_off(run_id)])
    await admin.database.write(run_log.apply, admin.zone, node, [succeeded(run_id, admin.clock.now() + STEP_MS)])
    chain = answer(await admin.client.get(f"/api/v1/runs/{run_id}/chain"))
    assert ([each["id"] for each in chain["attempts"]], chain["shards"], chain["parent"]) == ([run_id], [], None)
    (made,) = chain["children"]
    assert (made["job_id"], made["trigger_type"], made["phase"], made["outcome"]) == (child, "PARENT", "pending", None)
    row = answer(await admin.client.get(f"/api/v1/runs/{made['id']}"))
    assert (row["parent_run_id"], row["first_run_id"], row["attempt"]) == (run_id, None, 1)
    above = answer(await admin.client.get(f"/api/v1/runs/{made['id']}/chain"))
    assert above["parent"]["id"] == run_id


async def test_there_is_no_chain_of_a_run_that_is_not_there(admin: AdminHarness) -> None:
    assert error(await admin.client.get("/api/v1/runs/999/chain"), 404)["code"] == "not_found"
