"""Ending runs over REST: who may, what is refused, and a run of an executor on the SDK that ends."""

import asyncio
import threading
from pathlib import Path

from jobwheel import JobContext
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import Json, add_run, answer, change_run, error, make_job, read_events, register
from tests.support.live_admin import seen
from tests.support.live_rest import LiveRest, live_rest

ADDRESS = "http://10.0.0.7:9999/"
FLYING = {"phase": "accepted", "owner": None, "executor_address": ADDRESS, "unheard_ms": NOW_MS + 20}


async def kill(admin: AdminHarness, run_id: int, status: int = 200, **body: object) -> Json:
    reply = await admin.client.post(f"/api/v1/runs/{run_id}/kill", json=body)
    return answer(reply) if status == 200 else error(reply, status)


async def test_the_kill_of_a_pending_run_is_carried_out_before_the_reply(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    run = answer(await admin.client.post(f"/api/v1/runs/{run_id}/kill"))
    assert run["kill_asked_at"] == "2026-11-27T02:30:00.250Z"
    assert run["last_heard_at"] is None
    assert run["trigger_message"] == "kill: admin wants this run to end\n"
    assert (admin.scheduler.killed, admin.scheduler.kill_passes) == ([run_id], 1)
    event = (await read_events(admin, job["id"]))[-1]
    assert (event["kind"], event["actor"], event["run_id"]) == ("run.kill_asked", "admin", run_id)
    assert event["details"] == {
        "by_job": False,
        "count": 1,
        "runs": [{"id": run_id, "phase": "pending", "address": None}],
    }


async def test_a_run_at_an_executor_of_ours_is_asked_to_end_alone(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await change_run(admin, run_id, **FLYING, instance_id="i-7")
    run = await kill(admin, run_id)
    assert (run["phase"], run["last_heard_at"]) == ("accepted", "2026-11-27T02:30:00.270Z")
    assert (admin.scheduler.killed, admin.scheduler.kill_passes) == ([], 1)


async def test_an_executor_that_would_end_more_needs_by_job(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await change_run(admin, run_id, **FLYING)
    refused = await kill(admin, run_id, 409)
    assert (refused["code"], refused["field"]) == ("kills_whole_job", "by_job")
    assert ADDRESS in refused["message"]
    assert (await kill(admin, run_id, by_job=True))["kill_asked_at"] is not None
    assert len([each for each in await read_events(admin, job["id"]) if each["kind"] == "run.kill_asked"]) == 1


async def test_a_process_that_says_it_cannot_end_one_run_is_found_by_its_normal_address(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await register(admin, "orders", ADDRESS, "i-1")
    await change_run(admin, run_id, **{**FLYING, "executor_address": ADDRESS.rstrip("/")}, instance_id="i-1")
    assert (await kill(admin, run_id, 409))["code"] == "kills_whole_job"


async def test_what_has_ended_is_refused_and_stays(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run_id = await add_run(admin, job["id"])
    await change_run(admin, run_id, phase=None, owner=None, outcome="failed", trigger_code=500)
    before = answer(await admin.client.get(f"/api/v1/runs/{run_id}"))
    refused = await kill(admin, run_id, 409, by_job=True)
    assert refused["code"] == "run_ended"
    assert answer(await admin.client.get(f"/api/v1/runs/{run_id}")) == before
    assert (await kill(admin, 999_999, 404))["code"] == "not_found"
    assert (await kill(admin, run_id, 422, by_job="yes"))["field"] == "by_job"


async def test_all_open_runs_of_a_job(admin: AdminHarness) -> None:
    job, other = await make_job(admin), await make_job(admin, 1)
    path = f"/api/v1/jobs/{job['id']}/kill-runs"
    runs = [await add_run(admin, job["id"]) for _ in range(3)]
    await add_run(admin, other["id"])
    await change_run(admin, runs[0], **FLYING)
    assert error(await admin.client.post(path), 409)["code"] == "kills_whole_job"
    assert admin.scheduler.kill_passes == 0
    assert answer(await admin.client.post(path, json={"by_job": True})) == {"count": 3}
    assert sorted(admin.scheduler.killed) == runs[1:]
    assert answer(await admin.client.post(path)) == {"count": 0}
    assert error(await admin.client.post("/api/v1/jobs/999/kill-runs"), 404)["code"] == "not_found"


async def test_a_run_of_the_sdk_ends_and_the_one_behind_it_runs(tmp_path: Path) -> None:
    async with live_rest(tmp_path / "admin") as rest:
        executor, started = rest.executor(tmp_path / "executor"), threading.Semaphore(0)

        @executor.job("settle")
        def settle(ctx: JobContext) -> None:
            started.release()
            ctx.wait_cancelled(8)

        await asyncio.to_thread(executor.start_in_background)
        try:
            job = await rest.job()
            run, behind = [await rest.post(f"jobs/{job['id']}/run", {}, 201) for _ in range(2)]
            assert await asyncio.to_thread(started.acquire, timeout=8)
            await rest.post(f"runs/{run['id']}/kill", {})
            ended = await seen(lambda: _ended(rest, run["id"]))
            assert (ended["trigger_code"], ended["handle_code"]) == (200, 500)
            assert "killed" in ended["handle_message"]
            assert "was told (code 200)" in ended["trigger_message"]
            assert await asyncio.to_thread(started.acquire, timeout=8)
            assert (await rest.get(f"runs/{behind['id']}"))["phase"] == "accepted"
            await rest.post(f"jobs/{job['id']}/kill-runs", {})
            await seen(lambda: _ended(rest, behind["id"]))
        finally:
            await asyncio.to_thread(executor.stop_in_background)


async def _ended(rest: LiveRest, run_id: int) -> Json | None:
    run = await rest.get(f"runs/{run_id}")
    return run if run["outcome"] else None
