"""Jobs by app name and key: made, changed, read, run and deleted by other systems."""

from typing import Any

import pytest

from jobwheel.admin.api.job_models import JobFields, JobModel
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import EVERY_5_S, Json, answer, error, event_kinds, make_group, make_job, read_events

URL = "/api/v1/groups/orders/jobs/settle"
SETTLE: Json = {"name": "settle accounts", "handler": "settle", **EVERY_5_S}


async def put(admin: AdminHarness, expected: int = 200, url: str = URL, /, **fields: Any) -> Json:
    return answer(await admin.client.put(url, json={**SETTLE, **fields}), expected)


@pytest.fixture
async def group_id(admin: AdminHarness) -> int:
    return await make_group(admin)


async def test_what_is_not_there_is_made(admin: AdminHarness, group_id: int) -> None:
    made = await put(admin, 201, parameter="day=1", tags=["night"], status="running")
    assert made["action"] == "create"
    job = made["job"]
    assert (job["group_id"], job["key"], job["status"]) == (group_id, "settle", "running")
    assert (job["parameter"], job["tags"], job["version"]) == ("day=1", ["night"], 0)
    assert answer(await admin.client.get(URL)) == job
    assert answer(await admin.client.get(f"/api/v1/jobs/{job['id']}")) == job
    assert admin.scheduler.wakes == 1
    assert await event_kinds(admin, job["id"]) == ["job.created"]


async def test_the_same_again_changes_nothing(admin: AdminHarness, group_id: int) -> None:
    first = await put(admin, 201, status="running", pause_windows=[window(2)])
    again = await put(admin, status="running", pause_windows=[window(2)])
    assert again == {"action": "unchanged", "fields": [], "job": first["job"]}
    assert admin.scheduler.wakes == 1
    assert await event_kinds(admin, first["job"]["id"]) == ["job.created"]


async def test_only_what_differs_is_changed(admin: AdminHarness, group_id: int) -> None:
    job = (await put(admin, 201, timeout_s=9))["job"]
    changed = await put(admin, timeout_s=10)
    assert changed["action"] == "change"
    assert changed["fields"] == [{"field": "timeout_s", "before": 9, "after": 10}]
    assert changed["job"] == {**job, "timeout_s": 10, "version": 1, "updated_at": changed["job"]["updated_at"]}
    assert (await read_events(admin, job["id"]))[-1]["details"] == {
        "before": {"timeout_s": 9},
        "after": {"timeout_s": 10},
    }


async def test_what_is_left_out_has_its_default_but_status_script_and_anchor_stay(
    admin: AdminHarness, group_id: int
) -> None:
    rate = {"schedule_type": "FIX_RATE", "schedule_conf": "60"}
    made = (await put(admin, 201, **rate, status="running", parameter="p", valid_from="2026-01-01T00:00:00Z"))["job"]
    assert made["anchor_at"] is not None
    changed = (await put(admin, **rate))["job"]
    assert (changed["parameter"], changed["valid_from"]) == ("", None)
    assert (changed["status"], changed["anchor_at"]) == ("running", made["anchor_at"])
    assert (await put(admin, **rate))["action"] == "unchanged"


async def test_a_status_starts_and_stops(admin: AdminHarness, group_id: int) -> None:
    job = (await put(admin, 201))["job"]
    assert job["status"] == "stopped"
    assert (await put(admin, status="running"))["job"]["status"] == "running"
    stopped = await put(admin, status="stopped", schedule_type="NONE", schedule_conf="")
    assert stopped["job"]["status"] == "stopped"
    kinds = ["job.created", "job.started", "job.stopped", "job.updated"]
    assert await event_kinds(admin, job["id"]) == kinds


async def test_a_script_is_saved_when_it_differs(admin: AdminHarness, group_id: int) -> None:
    script: Json = {"glue_type": "GLUE_SHELL", "handler": "", "glue_remark": "says one"}
    job = (await put(admin, 201, **script, glue_source="echo 1\n"))["job"]
    assert (await put(admin, **script, glue_source="echo 1\r\n"))["action"] == "unchanged"
    changed = await put(admin, **{**script, "glue_remark": "says two"}, glue_source="echo 2\n")
    assert [each["field"] for each in changed["fields"]] == ["glue_source", "glue_remark"]
    assert (await put(admin, glue_type="GLUE_SHELL", handler=""))["action"] == "unchanged"
    versions = answer(await admin.client.get(f"/api/v1/jobs/{job['id']}/script/versions"))["items"]
    assert [each["remark"] for each in versions] == ["says two", "says one"]


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"schedule_conf": "61 * * * * ?"}, 422, "schedule_conf"),
        ({"group_id": 1}, 422, "group_id"),
        ({"children": ["gone"]}, 422, "children"),
        ({"glue_source": "echo"}, 422, "glue_source"),
        ({"status": "running", "schedule_type": "NONE", "schedule_conf": ""}, 409, "schedule_type"),
        ({"status": "odd"}, 422, "status"),
        ({"pause_windows": [{"from": "x", "until": "y"}]}, 422, "pause_windows[0].from"),
    ],
)
async def test_bad_input_changes_nothing(
    admin: AdminHarness, group_id: int, fields: Json, status: int, field: str
) -> None:
    refused = error(await admin.client.put(URL, json={**SETTLE, **fields}), status)
    assert refused["field"] == field
    assert error(await admin.client.get(URL), 404)["code"] == "not_found"
    job = (await put(admin, 201))["job"]
    error(await admin.client.put(URL, json={**SETTLE, "timeout_s": 5, **fields}), status)
    assert answer(await admin.client.get(URL)) == job


async def test_a_group_must_be_there_once(admin: AdminHarness) -> None:
    refused = error(await admin.client.put(URL, json=SETTLE), 404)
    assert "there is no group orders" in refused["message"]
    await make_group(admin)
    await make_group(admin, "others")
    await admin.database.write(lambda c: c.exec_driver_sql("UPDATE xxl_job_group SET app_name = 'orders'"))
    assert error(await admin.client.put(URL, json=SETTLE), 409)["code"] == "ambiguous_group"
    assert error(await admin.client.get(URL), 409)["code"] == "ambiguous_group"


async def test_a_key_that_is_no_part_of_an_address_is_refused(admin: AdminHarness, group_id: int) -> None:
    body = {**SETTLE, "group_id": group_id}
    for key in ("a/b", ".", ".."):
        assert error(await admin.client.post("/api/v1/jobs", json={**body, "key": key}), 422)["field"] == "key"


async def test_runs_and_deletes(admin: AdminHarness, group_id: int) -> None:
    job = (await put(admin, 201, parameter="own"))["job"]
    run = answer(await admin.client.post(f"{URL}/run"), 201)
    assert (run["job_id"], run["parameter"], run["trigger_type"]) == (job["id"], "own", "MANUAL")
    run = answer(await admin.client.post(f"{URL}/run", json={"parameter": "other"}), 201)
    assert run["parameter"] == "other"
    assert (await admin.client.delete(URL)).status_code == 204
    for method in ("GET", "DELETE"):
        assert error(await admin.client.request(method, URL), 404)["message"] == "there is no job orders/settle"
    assert error(await admin.client.post(f"{URL}/run"), 404)["code"] == "not_found"


async def test_keys_of_any_language(admin: AdminHarness, group_id: int) -> None:
    url = "/api/v1/groups/orders/jobs/%E7%BB%93%E7%AE%97%20a%3Fb%23"
    assert (await put(admin, 201, url))["job"]["key"] == "结算 a?b#"
    assert answer(await admin.client.get(url))["key"] == "结算 a?b#"


async def test_lists_jobs_of_a_tag(admin: AdminHarness, group_id: int) -> None:
    for name, tags in {"a": ["night", "x"], "b": ["Night_1"], "c": ["midnight"], "d": []}.items():
        await make_job(admin, group_id, name=name, tags=tags)

    async def names(tag: str) -> list[str]:
        return [job["name"] for job in answer(await admin.client.get("/api/v1/jobs", params={"tag": tag}))["items"]]

    assert await names("night") == ["a"]
    assert await names("NIGHT_1") == ["b"]
    assert await names("%") == []


def test_all_settings_of_a_job_are_in_documents() -> None:
    """A field that is added to jobs is exported and applied by itself."""
    assert set(JobFields.model_fields) <= set(JobModel.model_fields)


def window(day: int) -> Json:
    return {"from": f"2026-12-0{day}T00:00:00.000Z", "until": f"2026-12-0{day}T06:00:00.000Z", "remark": "maintenance"}
