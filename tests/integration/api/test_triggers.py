"""Runs that somebody asks for."""

import pytest

from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import answer, error, make_group, make_job, read_events, register


async def trigger(admin: AdminHarness, job_id: int, **body: object) -> dict[str, object]:
    return answer(await admin.client.post(f"/api/v1/jobs/{job_id}/run", json=body), 201)


async def test_a_run_is_written_due_now_and_flies(admin: AdminHarness) -> None:
    job = await make_job(admin, parameter="own")
    run = await trigger(admin, job["id"])
    expected = {
        "job_id": job["id"],
        "group_id": job["group_id"],
        "trigger_type": "MANUAL",
        "phase": "pending",
        "outcome": None,
        "planned_at": "2026-11-27T02:30:00.250Z",
        "due_at": "2026-11-27T02:30:00.250Z",
        "triggered_at": "2026-11-27T02:30:00.000Z",
        "parameter": "own",
        "attempt": 1,
        "trigger_code": 0,
        "handle_code": 0,
        "executor_address": None,
    }
    assert {name: run[name] for name in expected} == expected
    assert answer(await admin.client.get(f"/api/v1/runs/{run['id']}")) == run
    flown = admin.scheduler.flown
    assert [(each.id, each.due_ms, each.parameter) for each in flown] == [(run["id"], NOW_MS, "own")]


async def test_the_event_tells_who_asked(admin: AdminHarness) -> None:
    job = await make_job(admin)
    run = await trigger(admin, job["id"], parameter="x")
    event = (await read_events(admin, job["id"]))[-1]
    assert (event["kind"], event["actor"], event["run_id"]) == ("run.triggered", "admin", run["id"])
    assert event["details"] == {"trigger_type": "MANUAL", "parameter": "x", "addresses": []}


@pytest.mark.parametrize(("given", "kept"), [(None, "own"), ("", ""), ("other\nline", "other\nline")])
async def test_a_parameter_that_is_given_replaces_the_jobs(admin: AdminHarness, given: str | None, kept: str) -> None:
    job = await make_job(admin, parameter="own")
    assert (await trigger(admin, job["id"], parameter=given))["parameter"] == kept


async def test_without_a_body_the_job_runs_as_it_is(admin: AdminHarness) -> None:
    job = await make_job(admin, parameter="own")
    assert answer(await admin.client.post(f"/api/v1/jobs/{job['id']}/run"), 201)["parameter"] == "own"


async def test_stopped_and_none_jobs_run_by_hand(admin: AdminHarness) -> None:
    job = await make_job(admin, schedule_type="NONE", schedule_conf="")
    assert (await trigger(admin, job["id"]))["phase"] == "pending"


async def test_addresses_are_those_that_registered(admin: AdminHarness) -> None:
    job = await make_job(admin)
    await register(admin, "orders", "http://10.0.0.7:9999/")
    await trigger(admin, job["id"], addresses=["http://10.0.0.7:9999"])
    assert admin.scheduler.flown[0].named_addresses == ("http://10.0.0.7:9999/",)


async def test_addresses_of_a_fixed_group_are_those_of_its_list(admin: AdminHarness) -> None:
    addresses = ["http://10.0.0.7:9999/", "https://executor.example.com/jobs"]
    group_id = await make_group(admin, address_type="fixed", addresses=addresses)
    job = await make_job(admin, group_id)
    await trigger(admin, job["id"], addresses=[addresses[1], addresses[0], addresses[1] + "/"])
    assert admin.scheduler.flown[0].named_addresses == (addresses[1], addresses[0])


@pytest.mark.parametrize("dead_s", [None, 91.0])
async def test_an_address_that_is_not_the_groups_is_refused(admin: AdminHarness, dead_s: float | None) -> None:
    job = await make_job(admin)
    await make_group(admin, "others")
    await register(admin, "others", "http://10.0.0.8:9999/")
    if dead_s is not None:
        await register(admin, "orders", "http://10.0.0.8:9999/")
        await admin.clock.advance(dead_s)
    reply = await admin.client.post(f"/api/v1/jobs/{job['id']}/run", json={"addresses": ["http://10.0.0.8:9999/"]})
    assert error(reply, 422)["field"] == "addresses"
    assert admin.scheduler.flown == []
    assert answer(await admin.client.get("/api/v1/runs"))["items"] == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"parameter": "x" * 65_536}, "parameter"),
        ({"parameter": 5}, "parameter"),
        ({"addresses": "http://10.0.0.7/"}, "addresses"),
        ({"addresses": [1]}, "addresses[0]"),
        ({"address": []}, "address"),
    ],
)
async def test_bad_bodies(admin: AdminHarness, body: dict[str, object], field: str) -> None:
    job = await make_job(admin)
    refused = error(await admin.client.post(f"/api/v1/jobs/{job['id']}/run", json=body), 422)
    assert refused["field"] == field
    assert admin.scheduler.flown == []
