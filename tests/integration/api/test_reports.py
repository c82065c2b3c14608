"""Reports, statistics, clean-ups, a job's own retention and what a job is doing, through the API."""

from typing import Any

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.services.clean_ups import CleanUpWork
from jobwheel.admin.services.run_counting import RunCounting
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store.tables import job_log
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import error, make_job

DONE: dict[str, Any] = {"trigger_code": 200, "handle_code": 200, "outcome": "succeeded"}


async def write_run(admin: AdminHarness, job: dict[str, Any], **columns: Any) -> int:
    values = {
        "job_group": job["group_id"],
        "job_id": job["id"],
        "trigger_time": admin.zone.to_wall(NOW_MS),
        "planned_ms": NOW_MS,
        "due_ms": NOW_MS,
        **columns,
    }
    inserted = await admin.database.write(lambda c: c.execute(job_log.insert().values(values)).inserted_primary_key)
    assert inserted is not None
    return int(inserted[0])


def turn(admin: AdminHarness, name: str) -> Turn:
    return Turn(name, admin.database, lambda: NodeId(1))


async def test_the_daily_report(admin: AdminHarness) -> None:
    job = await make_job(admin)
    await write_run(admin, job, **DONE)
    await write_run(admin, job, phase="pending")
    await RunCounting(admin.database, admin.clock, admin.zone, turn(admin, "run_counting")).run_once()
    report = (await admin.client.get("/api/v1/reports/daily")).json()
    assert report["time_zone"] == "Asia/Shanghai"
    assert report["counted_at"] == "2026-11-27T02:30:00.250Z"
    assert [day["day"] for day in report["days"]] == ["2026-11-25", "2026-11-26", "2026-11-27"]
    counts = {"running": 1, "succeeded": 1, "failed": 0}
    assert report["days"][2] == {"day": "2026-11-27", **counts, "groups": [{"group_id": job["group_id"], **counts}]}
    other = (await admin.client.get("/api/v1/reports/daily", params={"days": 1, "group_id": 99})).json()
    assert other["days"] == [{"day": "2026-11-27", "running": 0, "succeeded": 0, "failed": 0, "groups": []}]


@pytest.mark.parametrize("path", ["/api/v1/reports/daily?days=0", "/api/v1/reports/daily?day=1"])
async def test_wrong_questions(admin: AdminHarness, path: str) -> None:
    assert error(await admin.client.get(path), 422)["code"] == "invalid"


async def test_a_jobs_statistics_before_and_after_they_are_settled(admin: AdminHarness) -> None:
    job = await make_job(admin)
    await write_run(admin, job, sent_ms=NOW_MS + 4, ended_ms=NOW_MS + 1004, **DONE)
    path = f"/api/v1/jobs/{job['id']}/statistics"
    before = (await admin.client.get(path)).json()
    admin.clock.step(1200)
    await RunCounting(admin.database, admin.clock, admin.zone, turn(admin, "run_counting")).run_once()
    assert (await admin.client.get(path)).json() == before
    [day] = before["days"]
    assert day == {"day": "2026-11-27", **before["total"]}
    assert (day["count"], day["outcomes"]) == (1, {"succeeded": 1})
    assert day["lateness"] == {"count": 1, "p50_ms": 4, "p95_ms": 4, "p99_ms": 4, "most_ms": 4}
    assert day["duration"]["most_ms"] == 1000
    error(await admin.client.get("/api/v1/jobs/999/statistics"), 404)


async def test_of_a_job_without_runs_there_is_nothing_to_tell(admin: AdminHarness) -> None:
    job = await make_job(admin)
    statistics = (await admin.client.get(f"/api/v1/jobs/{job['id']}/statistics")).json()
    assert statistics["days"] == []
    assert statistics["total"]["lateness"] == {
        "count": 0, "p50_ms": None, "p95_ms": None, "p99_ms": None, "most_ms": None,
    }  # fmt: skip


async def test_a_job_tells_its_last_run_and_how_many_run(admin: AdminHarness) -> None:
    job = await make_job(admin)
    assert (job["running_now"], job["last_run"]) == (0, None)
    await write_run(admin, job, **DONE)
    last = await write_run(
        admin, job, trigger_code=200, handle_code=500, outcome="failed", sent_ms=NOW_MS, ended_ms=NOW_MS + 7
    )
    for phase in ("pending", "sending", "accepted"):
        await write_run(admin, job, phase=phase)
    other = await make_job(admin, name="another", group_id=job["group_id"])
    expected = {
        "id": last,
        "outcome": "failed",
        "planned_at": "2026-11-27T02:30:00.250Z",
        "ended_at": "2026-11-27T02:30:00.257Z",
        "took_ms": 7,
    }
    listed = {each["id"]: each for each in (await admin.client.get("/api/v1/jobs")).json()["items"]}
    assert (listed[job["id"]]["running_now"], listed[job["id"]]["last_run"]) == (2, expected)
    assert (listed[other["id"]]["running_now"], listed[other["id"]]["last_run"]) == (0, None)
    shown = (await admin.client.post(f"/api/v1/jobs/{job['id']}/stop")).json()
    assert (shown["running_now"], shown["last_run"]) == (2, expected)


async def test_a_jobs_own_retention(admin: AdminHarness) -> None:
    job = await make_job(admin, retention_days=7)
    assert job["retention_days"] == 7
    path = f"/api/v1/jobs/{job['id']}"
    for days in (0, 36_500, None):
        assert (await admin.client.patch(path, json={"retention_days": days})).json()["retention_days"] == days
    for days in (-1, 36_501):
        refused = error(await admin.client.patch(path, json={"retention_days": days}), 422)
        assert (refused["field"], "0 keeps runs for ever" in refused["message"]) == ("retention_days", True)
    assert (await admin.client.get(path)).json()["retention_days"] is None


async def test_a_clean_up_is_asked_for_seen_and_done(admin: AdminHarness) -> None:
    job = await make_job(admin)
    for _ in range(3):
        await write_run(admin, job, **DONE)
    asked = await admin.client.post("/api/v1/runs/clean-up", json={"which": "all", "job_id": job["id"]})
    assert asked.status_code == 202
    assert (asked.json()["state"], asked.json()["asked_by"]) == ("waiting", "admin")
    await CleanUpWork(admin.database, admin.clock, turn(admin, "clean_ups")).run_once()
    path = f"/api/v1/runs/clean-up/{asked.json()['id']}"
    done = (await admin.client.get(path)).json()
    assert (done["state"], done["deleted"], done["about"]) == ("done", 3, 3)
    assert (await admin.client.get("/api/v1/runs/clean-up")).json() == {"items": [done], "next": None}
    assert (await admin.client.post(f"{path}/cancel")).json() == done
    kinds = [each["kind"] for each in (await admin.client.get(f"/api/v1/jobs/{job['id']}/events")).json()["items"]]
    assert kinds[:2] == ["run.clean_up_ended", "run.clean_up_requested"]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"which": "some"}, 422, "which"),
        ({}, 422, "which"),
        ({"which": "all", "job": 1}, 422, "job"),
        ({"which": "all", "job_id": 999}, 404, None),
        ({"which": "all", "group_id": 999}, 404, None),
    ],
)
async def test_what_is_no_clean_up_changes_nothing(
    admin: AdminHarness, body: dict[str, object], status: int, field: str | None
) -> None:
    assert error(await admin.client.post("/api/v1/runs/clean-up", json=body), status)["field"] == field
    assert (await admin.client.get("/api/v1/runs/clean-up")).json()["items"] == []
    error(await admin.client.get("/api/v1/runs/clean-up/1"), 404)
    error(await admin.client.post("/api/v1/runs/clean-up/1/cancel"), 404)
