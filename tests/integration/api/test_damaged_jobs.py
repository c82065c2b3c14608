"""Jobs whose rows hold what their columns cannot: people can look at them, and set them right."""

import pytest

from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import make_group, make_job

VALUES = (
    ("trigger_next_time", "9223372036854775807"),
    ("trigger_next_time", "-9223372036854775808"),
    ("trigger_next_time", "'soon'"),
    ("trigger_last_time", "9223372036854775807"),
    ("anchor_ms", "-9223372036854775808"),
    ("valid_from_ms", "9223372036854775807"),
    ("valid_until_ms", "1.5"),
    ("created_ms", "9223372036854775807"),
    ("updated_ms", "x'00'"),
    ("executor_timeout", "9223372036854775807"),
    ("executor_param", "CAST(x'e9ff' AS TEXT)"),
    ("job_desc", "x'ff00'"),
    ("tags", "x'2cff'"),
    ("child_jobid", "'1,٣,²'"),
)


@pytest.mark.parametrize("method", ["list", "get", "save"])
async def test_each_can_be_read_and_saved(admin: AdminHarness, method: str) -> None:
    group_id = await make_group(admin)
    made = [await make_job(admin, group_id, name=f"job {n}") for n in range(len(VALUES))]
    for job, (column, value) in zip(made, VALUES, strict=True):
        statement = f"UPDATE xxl_job_info SET {column} = {value} WHERE id = {job['id']}"
        await admin.database.write(lambda c, statement=statement: c.exec_driver_sql(statement))  # type: ignore[misc]
    if method == "list":
        reply = await admin.client.get("/api/v1/jobs?limit=100")
        assert reply.status_code == 200, reply.text
        assert [each["id"] for each in reply.json()["items"]] == [job["id"] for job in made]
        return
    for job, bad in zip(made, VALUES, strict=True):
        url = f"/api/v1/jobs/{job['id']}"
        if method == "get":
            reply = await admin.client.get(url)
        else:
            whole = {"name": "anew", "timeout_s": 0, "anchor_at": None, "valid_from": None, "valid_until": None}
            reply = await admin.client.patch(url, json={**whole, "tags": [], "child_job_ids": [], "parameter": ""})
        assert reply.status_code == 200, (bad, reply.text)
