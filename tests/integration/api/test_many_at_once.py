"""Many jobs changed at once, past times made up for, runs repeated: through the API."""

from typing import Any

import pytest

from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, add_run, answer, change_run, error, make_group, make_job, read_job

HOURLY: Json = {"schedule_type": "CRON", "schedule_conf": "0 0 * * * ?"}


async def post(admin: AdminHarness, path: str, **body: Any) -> Json:
    return answer(await admin.client.post(f"/api/v1/{path}", json=body))


async def refused(admin: AdminHarness, path: str, status: int = 422, /, **body: Any) -> Json:
    return error(await admin.client.post(f"/api/v1/{path}", json=body), status)


class TestBulk:
    async def test_starts_stops_and_runs_what_is_chosen(self, admin: AdminHarness) -> None:
        group_id = await make_group(admin)
        jobs = [await make_job(admin, group_id, name=name, tags=["night"]) for name in ("a", "b")]
        never = await make_job(admin, group_id, schedule_type="NONE", schedule_conf="", tags=["night"])
        other = await make_job(admin, await make_group(admin, "others"))
        ids = [jobs[0]["id"], jobs[1]["id"], never["id"]]
        told = await post(admin, "jobs/bulk", action="start", tag="night", dry_run=True)
        assert [(each["job_id"], each["result"]) for each in told["jobs"]] == [(each, "would") for each in ids]
        assert (await read_job(admin, ids[0]))["status"] == "stopped"
        started = (await post(admin, "jobs/bulk", action="start", tag="night"))["jobs"]
        assert [each["result"] for each in started] == ["done", "done", "refused"]
        assert (started[2]["error"]["code"], started[2]["error"]["field"]) == ("never_fires", "schedule_type")
        again = (await post(admin, "jobs/bulk", action="start", ids=[*ids[:2], 999]))["jobs"]
        assert [each["result"] for each in again] == ["unchanged", "unchanged", "refused"]
        assert again[2]["error"]["message"] == "there is no job 999"
        stopped = await post(admin, "jobs/bulk", action="stop", group_id=group_id, status="running", name="b")
        assert [(each["job_id"], each["result"]) for each in stopped["jobs"]] == [(ids[1], "done")]
        ran = (await post(admin, "jobs/bulk", action="run", all=True, parameter="x"))["jobs"]
        assert [each["job_id"] for each in ran] == [*ids, other["id"]]
        assert [each["run_id"] for each in ran] == [run.id for run in admin.scheduler.flown]
        assert {run.parameter for run in admin.scheduler.flown} == {"x"}

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"action": "start"}, "ids"),
            ({"action": "start", "all": True, "tag": "x"}, "ids"),
            ({"action": "start", "ids": [1], "status": "running"}, "ids"),
            ({"action": "start", "ids": [1] * 1001}, "ids"),
            ({"action": "delete", "all": True}, "action"),
            ({"action": "stop", "all": True, "parameter": "x"}, "parameter"),
        ],
    )
    async def test_what_is_unclear_is_refused(self, admin: AdminHarness, body: Json, field: str) -> None:
        assert (await refused(admin, "jobs/bulk", **body))["field"] == field


class TestBackfill:
    async def test_is_told_before_it_is_made(self, admin: AdminHarness) -> None:
        pause = {"from": "2026-11-26T10:30:00Z", "until": "2026-11-26T11:30:00Z"}
        job = await make_job(admin, **HOURLY, time_zone="Asia/Kolkata", pause_windows=[pause])
        body = {"from": "2026-11-26T10:00:00Z", "until": "2026-11-26T13:00:00Z"}
        path = f"jobs/{job['id']}/backfill"
        # Kolkata's full hours are UTC's half ones.
        expected = {
            "count": 2,
            "skipped": 0,
            "first_planned_at": "2026-11-26T11:30:00.000Z",
            "last_planned_at": "2026-11-26T12:30:00.000Z",
            "due_until": "2026-11-27T02:31:00.250Z",
        }
        assert await post(admin, path, **body, interval_s=60, dry_run=True) == expected
        assert answer(await admin.client.get("/api/v1/runs"))["items"] == []
        assert await post(admin, path, **body, interval_s=60) == expected
        assert (await post(admin, path, **body, in_pauses=True, only_missing=True, interval_s=0))["skipped"] == 2
        planned = [run["planned_at"] for run in answer(await admin.client.get("/api/v1/runs"))["items"]]
        assert planned[0] == "2026-11-26T10:30:00.000Z"
        assert answer(await admin.client.delete(f"/api/v1/{path}")) == {"removed": 3}
        assert answer(await admin.client.get("/api/v1/runs"))["items"] == []

    async def test_over_a_change_of_clocks(self, admin: AdminHarness) -> None:
        job = await make_job(admin, schedule_type="CRON", schedule_conf="0 30 2 * * ?", time_zone="Europe/Berlin")
        body = {"from": "2026-03-28T00:00:00Z", "until": "2026-03-31T00:00:00Z"}
        await post(admin, f"jobs/{job['id']}/backfill", **body)
        planned = [run["planned_at"] for run in answer(await admin.client.get("/api/v1/runs"))["items"]]
        assert planned[::-1] == ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"]

    @pytest.mark.parametrize(
        ("fields", "body", "field"),
        [
            ({"schedule_type": "NONE", "schedule_conf": ""}, {}, "schedule_type"),
            ({"schedule_type": "FIX_DELAY", "schedule_conf": "60"}, {}, "schedule_type"),
            ({"schedule_type": "FIX_RATE", "schedule_conf": "60"}, {}, "anchor_at"),
            (HOURLY, {"until": "2026-11-26T10:00:00Z"}, "until"),
            (HOURLY, {"until": "2026-11-28T10:00:00Z"}, "until"),
            (HOURLY, {"interval_s": -1}, "interval_s"),
            (HOURLY, {"interval_s": 1e9}, "interval_s"),
            (HOURLY, {"parameter": "x" * 65_536}, "parameter"),
            (HOURLY, {"from": "soon"}, "from"),
        ],
    )
    async def test_what_cannot_be_made_up_for(self, admin: AdminHarness, fields: Json, body: Json, field: str) -> None:
        job = await make_job(admin, **fields)
        usual = {"from": "2026-11-26T10:00:00Z", "until": "2026-11-26T13:00:00Z"}
        told = await refused(admin, f"jobs/{job['id']}/backfill", **{**usual, **body})
        assert told["field"] == field
        assert answer(await admin.client.get("/api/v1/runs"))["items"] == []


class TestRerun:
    async def test_by_ids_and_by_what_became_of_them(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        run_id = await add_run(admin, job["id"])
        assert (await refused(admin, "runs/rerun", 409, run_ids=[run_id]))["code"] == "open_runs"
        await change_run(admin, run_id, phase=None, outcome="failed")
        told = await post(admin, "runs/rerun", job_id=job["id"], outcome="failed", dry_run=True)
        assert [(each["repeats"], each["run_id"]) for each in told["runs"]] == [(run_id, None)]
        made = (await post(admin, "runs/rerun", run_ids=[run_id, run_id]))["runs"]
        assert [each["run_id"] for each in made] == [run.id for run in admin.scheduler.flown]

    @pytest.mark.parametrize(
        ("body", "status", "field"),
        [
            ({}, 422, "run_ids"),
            ({"run_ids": [1], "outcome": "failed"}, 422, "run_ids"),
            ({"run_ids": [1]}, 404, None),
            ({"outcome": "odd"}, 422, "outcome"),
            ({"planned_from": "x"}, 422, "planned_from"),
        ],
    )
    async def test_what_is_unclear_is_refused(
        self, admin: AdminHarness, body: Json, status: int, field: str | None
    ) -> None:
        assert (await refused(admin, "runs/rerun", status, **body))["field"] == field
