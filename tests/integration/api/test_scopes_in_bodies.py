"""What a caller names in bodies and queries: in a group that is not his it is not there."""

import httpx

from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.domain.report import DayCounts, RunCounts
from jobwheel.admin.store.reports import store_days
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import add_run, answer, change_run, error, make_group, make_job, patch_job
from tests.support.api_tokens import token_client
from tests.support.scope_things import SCRIPT, Things, everything, of_group


async def test_what_a_body_names_in_another_group_is_not_there(admin: AdminHarness, things: Things) -> None:
    other = await make_group(admin, "invoices")
    new = {"name": "new", "handler": "settle", "schedule_type": "NONE"}
    entry = {"app_name": things.app_name, "key": "keyed", **new}
    document = {"jobs": [entry]}
    absent = {"jobs": [{**entry, "app_name": "absent"}]}
    async with token_client(admin, access="scripts", group_id=other) as client:
        before = await everything(admin)
        for body in (document, absent):
            for path in ("plan", "apply"):
                refused = error(await client.post(f"/api/v1/jobs/{path}", json=body), 404)
                assert "there is no group" in refused["message"]
        for app_name in (things.app_name, "absent"):
            # The same for a group that others have and for one that nobody has: nothing is told of it.
            groups = {"groups": [{"app_name": app_name, "title": "Mine"}]}
            assert error(await client.post("/api/v1/jobs/apply", json=groups), 403)["code"] == "forbidden"
            assert (await client.put(f"/api/v1/groups/{app_name}/jobs/k", json=new)).status_code == 404
            export = await client.get("/api/v1/jobs/export", params={"app_name": app_name})
            assert error(export, 404)["message"] == f"there is no group {app_name}"
        for wish, status in (
            ({"group_id": things.group_id}, 404),
            ({"job_id": things.job_id}, 404),
            ({"group_id": other, "job_id": things.job_id}, 404),
            ({}, 403),
        ):
            assert (await client.post("/api/v1/runs/clean-up", json={"which": "all", **wish})).status_code == status
        assert (await client.post("/api/v1/runs/rerun", json={"run_ids": [things.done_run_id]})).status_code == 404
        by_filter = {"group_id": things.group_id, "outcome": "failed"}
        assert answer(await client.post("/api/v1/runs/rerun", json=by_filter)) == {"runs": []}
        bulk = answer(await client.post("/api/v1/jobs/bulk", json={"action": "run", "ids": [things.job_id]}))["jobs"]
        assert [(each["name"], each["result"], each["error"]["code"]) for each in bulk] == [
            ("", "refused", "not_found")
        ]
        for chosen in ({"all": True}, {"group_id": things.group_id}):
            assert answer(await client.post("/api/v1/jobs/bulk", json={"action": "run", **chosen})) == {"jobs": []}
        exported = answer(await client.get("/api/v1/jobs/export"))
        assert ([each["app_name"] for each in exported["groups"]], exported["jobs"]) == (["invoices"], [])
        assert answer(await client.get("/api/v1/runs/clean-up"))["items"] == []
        assert await everything(admin) == before


async def test_a_report_counts_the_callers_groups_alone(admin: AdminHarness, things: Things) -> None:
    today = admin.zone.to_wall(admin.clock.now()).date()
    counts = {GroupId(things.group_id): RunCounts(1, 2, 3), GroupId(things.group_id + 90): RunCounts(10, 20, 30)}
    await admin.database.write(store_days, [DayCounts(today, counts)], admin.zone.to_wall(admin.clock.now()))

    async def counted(client: httpx.AsyncClient, **query: str) -> tuple[int, list[int]]:
        day = answer(await client.get("/api/v1/reports/daily", params=query))["days"][-1]
        return day["failed"], [each["group_id"] for each in day["groups"]]

    assert await counted(admin.client) == (33, [things.group_id, things.group_id + 90])
    async with token_client(admin, group_id=things.group_id) as client:
        assert await counted(client) == (3, [things.group_id])
        assert await counted(client, group_id=str(things.group_id + 90)) == (0, [])


async def test_a_clean_up_of_a_job_leaves_its_runs_of_other_groups(admin: AdminHarness, things: Things) -> None:
    async with of_group(admin, things) as client:
        wish = {"which": "all", "job_id": things.job_id}
        made = answer(await client.post("/api/v1/runs/clean-up", json=wish), 202)
        assert (made["group_id"], made["job_id"]) == (things.group_id, things.job_id)
        # Of all groups: not for his eyes.
        whole = answer(await admin.client.post("/api/v1/runs/clean-up", json={"which": "all"}), 202)
        assert (await client.get(f"/api/v1/runs/clean-up/{whole['id']}")).status_code == 404
        assert (await client.post(f"/api/v1/runs/clean-up/{whole['id']}/cancel")).status_code == 404
        listed = answer(await client.get("/api/v1/runs/clean-up"))["items"]
        assert [each["id"] for each in listed] == [made["id"], things.clean_up_id]


async def test_the_chain_of_a_run_shows_no_run_of_another_group(admin: AdminHarness, things: Things) -> None:
    other = await make_group(admin, "invoices")
    job = await make_job(admin, other, key="other")
    parent, child = await add_run(admin, job["id"]), await add_run(admin, job["id"])
    await change_run(admin, things.run_id, parent_run_id=parent)
    await change_run(admin, child, parent_run_id=things.run_id)
    path = f"/api/v1/runs/{things.run_id}/chain"
    whole = answer(await admin.client.get(path))
    assert (whole["parent"]["id"], [each["id"] for each in whole["children"]]) == (parent, [child])
    async with of_group(admin, things) as client:
        own = answer(await client.get(path))
    assert (own["parent"], own["children"]) == (None, [])
    assert [each["id"] for each in own["attempts"]] == [things.run_id]


async def test_runs_that_a_program_asks_for_are_of_type_api(admin: AdminHarness, things: Things) -> None:
    async def types(client: httpx.AsyncClient) -> set[str]:
        keyed = answer(await client.post(f"/api/v1/groups/{things.app_name}/jobs/keyed/run"), 201)["id"]
        bulk = answer(await client.post("/api/v1/jobs/bulk", json={"action": "run", "ids": [things.job_id]}))
        again = answer(await client.post("/api/v1/runs/rerun", json={"run_ids": [things.done_run_id]}))
        plain = answer(await client.post(f"/api/v1/jobs/{things.job_id}/run"), 201)["id"]
        ids = [keyed, bulk["jobs"][0]["run_id"], again["runs"][0]["run_id"], plain]
        return {answer(await client.get(f"/api/v1/runs/{each}"))["trigger_type"] for each in ids}

    async with of_group(admin, things) as client:
        assert await types(client) == {"API"}
    assert await types(admin.client) == {"MANUAL"}


async def test_a_run_of_a_job_that_was_moved_away_is_not_repeated(admin: AdminHarness, things: Things) -> None:
    other = await make_group(admin, "invoices")
    await patch_job(admin, things.script_job_id, group_id=other)
    body = {"run_ids": [things.done_run_id]}
    async with of_group(admin, things) as client:
        assert "there is no job" in error(await client.post("/api/v1/runs/rerun", json=body), 404)["message"]
    async with token_client(admin, access="write", group_id=other) as client:
        assert "there is no run" in error(await client.post("/api/v1/runs/rerun", json=body), 404)["message"]


async def test_a_document_with_a_script_needs_the_right_to_scripts(admin: AdminHarness, things: Things) -> None:
    script = {"app_name": things.app_name, "key": "new", "name": "new", "schedule_type": "NONE", **SCRIPT}
    fields = {name: value for name, value in script.items() if name not in ("app_name", "key")}
    async with of_group(admin, things) as client:
        refused = error(await client.post("/api/v1/jobs/apply", json={"jobs": [script]}), 403)
        assert refused["field"] == "jobs[0]"
        assert (await client.put(f"/api/v1/groups/{things.app_name}/jobs/new", json=fields)).status_code == 403
    async with token_client(admin, access="scripts", group_id=things.group_id) as client:
        assert (await client.post("/api/v1/jobs/apply", json={"jobs": [script]})).status_code == 200


async def test_a_script_that_stays_as_it_is_needs_no_right_to_scripts(admin: AdminHarness, things: Things) -> None:
    entry = {"app_name": things.app_name, "schedule_type": "NONE"}
    plain = {**entry, "key": "plain", "name": "plain", "handler": "settle"}
    script = {**entry, "key": "new", "name": "new", **SCRIPT, "glue_source": "echo one\necho two\n"}
    answer(await admin.client.post("/api/v1/jobs/apply", json={"jobs": [plain, script]}))
    path = f"/api/v1/groups/{things.app_name}/jobs/new"
    fields = {name: value for name, value in script.items() if name not in ("app_name", "key")}
    windows = {"glue_source": "echo one\r\necho two\r\n", "glue_remark": "says it in other words"}
    without = {name: value for name, value in script.items() if name not in ("glue_source", "glue_remark")}
    async with of_group(admin, things) as client:
        for timeout_s, changes in ((3, {}), (4, windows)):
            body = {"jobs": [{**plain, "timeout_s": timeout_s}, {**script, "timeout_s": timeout_s, **changes}]}
            applied = answer(await client.post("/api/v1/jobs/apply", json=body))
            assert [each["action"] for each in applied["jobs"][:2]] == ["change"] * 2
        answer(await client.post("/api/v1/jobs/apply", json={"jobs": [without]}))
        answer(await client.put(path, json={**fields, "timeout_s": 5}))
        other = {"glue_source": "echo something else\n"}
        body = {"jobs": [{**plain, "timeout_s": 6}, {**script, **other}]}
        refused = error(await client.post("/api/v1/jobs/apply", json=body), 403)
        assert refused["field"] == "jobs[1]"
        assert refused["message"].startswith(f"jobs[1] ({things.app_name}/new): ")
        assert "may not change scripts, and this one is not the same as what is stored" in refused["message"]
        error(await client.put(path, json={**fields, **other}), 403)
        # What a plan shows is nobody's change.
        answer(await client.post("/api/v1/jobs/plan", json=body))
    found = answer(await admin.client.get(f"/api/v1/groups/{things.app_name}/jobs/plain"))
    assert found["timeout_s"] == 4
    job_id = answer(await admin.client.get(path))["id"]
    versions = answer(await admin.client.get(f"/api/v1/jobs/{job_id}/script/versions"))["items"]
    assert len(versions) == 1
