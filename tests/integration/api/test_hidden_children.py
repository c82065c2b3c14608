"""Children in groups that are not the caller's: not shown, and kept."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import answer, error, make_group, make_job, patch_job, read_job
from tests.support.api_tokens import token_client


@dataclass
class Family:
    """A job with a child in its own group and one in another."""

    group_id: int
    job_id: int
    own: int
    hidden: int

    @property
    def path(self) -> str:
        return f"/api/v1/jobs/{self.job_id}"


@pytest.fixture
async def family(admin: AdminHarness) -> Family:
    group_id = await make_group(admin)
    own = (await make_job(admin, group_id, key="own"))["id"]
    hidden = (await make_job(admin, await make_group(admin, "billing"), name="secret", key="hidden"))["id"]
    job = await make_job(admin, group_id, key="parent", child_job_ids=[own, hidden])
    return Family(group_id, job["id"], own, hidden)


@contextlib.asynccontextmanager
async def of_group(admin: AdminHarness, family: Family) -> AsyncIterator[httpx.AsyncClient]:
    async with token_client(admin, access="write", group_id=family.group_id) as client:
        yield client


async def children(admin: AdminHarness, family: Family) -> list[int]:
    return list((await read_job(admin, family.job_id))["child_job_ids"])


async def test_no_reading_shows_them(admin: AdminHarness, family: Family) -> None:
    await patch_job(admin, family.job_id, child_job_ids=[family.hidden])
    await patch_job(admin, family.job_id, child_job_ids=[family.own, family.hidden])
    async with of_group(admin, family) as client:
        for path in (family.path, "/api/v1/groups/orders/jobs/parent"):
            assert answer(await client.get(path))["child_job_ids"] == [family.own]
        jobs = answer(await client.get("/api/v1/jobs"))["items"]
        assert [each["child_job_ids"] for each in jobs] == [[], [family.own]]
        for step in ("start", "stop"):
            assert answer(await client.post(f"{family.path}/{step}"))["child_job_ids"] == [family.own]
        events = answer(await client.get(f"{family.path}/events"))["items"]
        edits = [each["details"] for each in events if each["kind"] == "job.updated"]
        assert [each["after"]["child_job_ids"] for each in edits] == [[family.own], []]
        exported = answer(await client.get("/api/v1/jobs/export"))["jobs"]
        assert [each.get("children") for each in exported] == [None, ["orders/own"]]
    assert await children(admin, family) == [family.own, family.hidden]


async def test_an_edit_keeps_them(admin: AdminHarness, family: Family) -> None:
    async with of_group(admin, family) as client:
        for given in ([], [family.own]):
            shown = answer(await client.patch(family.path, json={"child_job_ids": given}))
            assert shown["child_job_ids"] == given
            assert await children(admin, family) == [*given, family.hidden]


async def test_naming_one_is_refused_as_if_it_were_not_there(admin: AdminHarness, family: Family) -> None:
    new = {"group_id": family.group_id, "name": "new", "handler": "settle", "schedule_type": "NONE"}
    async with of_group(admin, family) as client:
        for named in (family.hidden, 4711):
            refused = [
                await client.patch(family.path, json={"child_job_ids": [family.own, named]}),
                await client.post("/api/v1/jobs", json={**new, "child_job_ids": [named]}),
            ]
            for reply in refused:
                assert error(reply, 422)["message"] == f"child_job_ids: there is no job {named}"
        for address in ("billing/hidden", "billing/absent"):
            body = {"name": "p", "handler": "settle", "schedule_type": "NONE", "children": [address]}
            reply = await client.put("/api/v1/groups/orders/jobs/parent", json=body)
            assert error(reply, 422)["message"] == f"children: there is no job {address}"
    assert await children(admin, family) == [family.own, family.hidden]


async def test_a_circle_through_one_tells_nothing_of_it(admin: AdminHarness, family: Family) -> None:
    await patch_job(admin, family.hidden, child_job_ids=[family.own])
    async with of_group(admin, family) as client:
        reply = await client.patch(f"/api/v1/jobs/{family.own}", json={"child_job_ids": [family.job_id]})
    message = error(reply, 422)["message"]
    assert "makes a circle" in message
    assert "secret" not in message


async def test_a_document_keeps_them(admin: AdminHarness, family: Family) -> None:
    async with of_group(admin, family) as client:
        document = answer(await client.get("/api/v1/jobs/export"))
        planned = answer(await client.post("/api/v1/jobs/plan", json=document))
        assert {each["action"] for each in planned["jobs"]} == {"unchanged"}
        body = {"name": "p", "handler": "settle", "schedule_type": "NONE"}
        put = answer(await client.put("/api/v1/groups/orders/jobs/parent", json=body))
        assert put["job"]["child_job_ids"] == []
    assert await children(admin, family) == [family.hidden]
