"""What each kind of caller may see and change: the access table, walked with each of them."""

from collections.abc import Awaitable, Mapping

import httpx
import pytest

from jobwheel.admin.api.access import RULES, Rule, Who
from jobwheel.admin.domain.ids import CleanUpId, GroupId, JobId, RunId
from jobwheel.admin.domain.run import TriggerType
from jobwheel.admin.domain.user import Role
from jobwheel.admin.services.backfills import BackfillWish
from jobwheel.admin.services.errors import NotFoundError
from jobwheel.admin.services.triggers import Trigger
from jobwheel.admin.store.tables import job_user
from tests.support.admin_harness import NOW_MS, AdminHarness
from tests.support.admin_jobs import answer, error, make_group, patch_job
from tests.support.api_tokens import token_client
from tests.support.scope_things import ADDRESS, SCRIPT, Things, everything, of_group

CHANNEL_URL = "https://hooks.example.com/walked"
IN_GROUPS = (Who.READ, Who.WRITE, Who.SCRIPTS, Who.ALL_GROUPS)
WALKED = [rule for rule in RULES if rule.path.startswith("/api/v1/") and not rule.path.startswith("/api/v1/session")]
NAMING = [rule for rule in WALKED if "{" in rule.path and rule.who in IN_GROUPS]
# Last of all, since they take away what the others are about.
ORDERED = sorted(
    WALKED, key=lambda rule: (rule.method == "DELETE", "/jobs" not in rule.path, rule.path.endswith("/{job_id}"))
)


def bodies(things: Things) -> Mapping[str, object]:
    """What each change is asked for with, so that it is not refused for its body."""
    fields = {"name": "new", "handler": "settle", "schedule_type": "NONE"}
    document = {"jobs": [{"app_name": things.app_name, "key": "applied", **fields}]}
    return {
        "PUT /api/v1/groups/{app_name}/jobs/{key}": fields,
        "POST /api/v1/jobs/plan": document,
        "POST /api/v1/jobs/apply": document,
        "POST /api/v1/jobs/bulk": {"action": "stop", "ids": [things.job_id]},
        "POST /api/v1/jobs/{job_id}/backfill": {"from": "2026-11-26T00:00:00Z", "until": "2026-11-26T00:00:30Z"},
        "POST /api/v1/runs/rerun": {"run_ids": [things.done_run_id]},
        "POST /api/v1/runs/clean-up": {"which": "but_last_1000", "group_id": things.group_id},
        "POST /api/v1/alarm-channels": {"name": "walked", "kind": "dingtalk", "settings": {"url": CHANNEL_URL}},
        "PATCH /api/v1/alarm-channels/{channel_id}": {"name": "renamed"},
        "POST /api/v1/groups": {"app_name": "made-by-a-walk", "title": "Made"},
        "PATCH /api/v1/groups/{group_id}": {"title": "Renamed"},
        "POST /api/v1/groups/{group_id}/drain": {"address": ADDRESS},
        "POST /api/v1/groups/{group_id}/undrain": {"address": ADDRESS},
        "POST /api/v1/groups/{group_id}/probe": {"address": ADDRESS},
        "POST /api/v1/tokens": {"name": "walked"},
        "POST /api/v1/jobs": {"group_id": things.group_id, "key": "new", **fields},
        "PATCH /api/v1/jobs/{job_id}": {"name": "renamed"},
        "PUT /api/v1/jobs/{job_id}/script": {"source": "echo walked", "remark": "a walk"},
        "GET /api/v1/schedule/preview": {"schedule_type": "NONE"},
    }


def name(rule: Rule) -> str:
    return f"{rule.method} {rule.path}"


async def call(client: httpx.AsyncClient, rule: Rule, things: Things) -> int:
    body = bodies(things).get(name(rule))
    if rule.method == "GET":
        return (await client.get(things.path(rule), params=body)).status_code  # type: ignore[arg-type]
    return (await client.request(rule.method, things.path(rule), json=body)).status_code


async def walk(client: httpx.AsyncClient, things: Things) -> dict[Who, set[int]]:
    """The statuses that the routes of each kind answer with."""
    found: dict[Who, set[int]] = {}
    for rule in ORDERED:
        status = await call(client, rule, things)
        assert status != 422, rule
        found.setdefault(rule.who, set()).add(status)
    return found


GOOD = {200, 201, 202, 204}
# What an earlier step of the walk took away, or what must be gone first.
DONE = {*GOOD, 404, 409}


class TestWalk:
    async def test_without_credentials(self, admin: AdminHarness, things: Things) -> None:
        before = await everything(admin)
        assert set().union(*(await walk(admin.guest, things)).values()) == {401}
        assert await everything(admin) == before

    async def test_a_token_that_reads(self, admin: AdminHarness, things: Things) -> None:
        async with token_client(admin, access="read") as client:
            before = await everything(admin)
            found = await walk(client, things)
            assert found[Who.READ] <= {200}
            assert found[Who.CALLER] == {200}
            for who in (Who.WRITE, Who.SCRIPTS, Who.ALL_GROUPS, Who.ADMIN):
                assert found[who] == {403}, who
            assert await everything(admin) == before
        assert (admin.scheduler.flown, admin.scheduler.wakes) == ([], 0)

    @pytest.mark.parametrize("access", ["write", "scripts"])
    async def test_a_token_of_another_group(self, admin: AdminHarness, things: Things, access: str) -> None:
        other = await make_group(admin, "invoices")
        async with token_client(admin, access=access, group_id=other) as client:
            before = await everything(admin)
            for rule in NAMING:
                allowed = rule.who is not Who.SCRIPTS or access == "scripts"
                assert await call(client, rule, things) == (404 if allowed else 403), rule
            assert await call(client, Rule("POST", "/api/v1/jobs", Who.WRITE), things) == 404
            assert await call(client, Rule("POST", "/api/v1/groups", Who.ALL_GROUPS), things) == 403
            for rule in (each for each in WALKED if each.who is Who.ADMIN):
                assert await call(client, rule, things) == 403, rule
            for path in ("jobs", "runs"):
                assert answer(await client.get(f"/api/v1/{path}")) == {"items": [], "next": None}
                within = {"group_id": str(things.group_id)}
                assert answer(await client.get(f"/api/v1/{path}", params=within))["items"] == []
            assert [each["id"] for each in answer(await client.get("/api/v1/groups"))["items"]] == [other]
            assert await everything(admin) == before

    @pytest.mark.parametrize(("access", "script_status"), [("write", {403}), ("scripts", {200})])
    async def test_a_token_of_the_group(
        self, admin: AdminHarness, things: Things, access: str, script_status: set[int]
    ) -> None:
        async with token_client(admin, access=access, group_id=things.group_id) as client:
            found = await walk(client, things)
        assert found[Who.READ] == {200}
        assert found[Who.WRITE] <= GOOD
        assert found[Who.SCRIPTS] == script_status
        assert found[Who.ALL_GROUPS] == found[Who.ADMIN] == {403}

    async def test_a_token_of_all_groups(self, admin: AdminHarness, things: Things) -> None:
        async with token_client(admin, access="scripts") as client:
            found = await walk(client, things)
        assert found[Who.WRITE] | found[Who.READ] | found[Who.SCRIPTS] <= GOOD
        # Of the group that still has a job, the deletion alone is refused, by its own rule.
        assert found[Who.ALL_GROUPS] <= DONE
        assert found[Who.ADMIN] == {403}

    async def test_an_admin(self, admin: AdminHarness, things: Things) -> None:
        statuses = set().union(*(await walk(admin.client, things)).values())
        assert statuses <= DONE


async def test_lists_show_the_own_group_alone(admin: AdminHarness, things: Things) -> None:
    run_ids = [things.done_run_id, things.run_id]
    async with of_group(admin, things) as client:
        jobs = answer(await client.get("/api/v1/jobs"))["items"]
        assert [each["key"] for each in jobs] == ["settle", "script", "keyed"]
        assert [each["id"] for each in answer(await client.get("/api/v1/runs"))["items"]] == run_ids
        bounds = {"planned_from": "2020-01-01T00:00:00Z", "group_id": str(things.group_id)}
        assert [each["id"] for each in answer(await client.get("/api/v1/runs", params=bounds))["items"]] == run_ids


async def test_no_edit_moves_a_job_into_another_group(admin: AdminHarness, things: Things) -> None:
    other = await make_group(admin, "invoices")
    async with of_group(admin, things) as client:
        path = f"/api/v1/jobs/{things.job_id}"
        refused = error(await client.patch(path, json={"group_id": other}), 404)
        assert refused["message"] == f"there is no group {other}"
        missing = error(await client.patch(path, json={"group_id": 4711}), 404)
        assert missing["message"] == "there is no group 4711"
        assert answer(await client.patch(path, json={"group_id": things.group_id, "name": "x"}))["name"] == "x"


async def test_a_job_that_was_moved_away_is_gone(admin: AdminHarness, things: Things) -> None:
    other = await make_group(admin, "invoices")
    await patch_job(admin, things.job_id, group_id=other)
    async with of_group(admin, things) as client:
        assert error(await client.get(f"/api/v1/jobs/{things.job_id}"), 404)["code"] == "not_found"
        # Its run was of the group, and stays so.
        assert answer(await client.get(f"/api/v1/runs/{things.run_id}"))["job_id"] == things.job_id


async def test_events_of_a_deleted_job_are_those_of_its_last_group(admin: AdminHarness, things: Things) -> None:
    path = f"/api/v1/jobs/{things.job_id}"
    await admin.client.delete(path)
    async with of_group(admin, things) as client:
        kinds = [each["kind"] for each in answer(await client.get(f"{path}/events"))["items"]]
        assert "job.deleted" in kinds
    other = await make_group(admin, "invoices")
    async with token_client(admin, group_id=other) as client:
        assert (await client.get(f"{path}/events")).status_code == 404


@pytest.mark.parametrize(
    "text", ["+{}", "%20{}", "{}.0", "0{}", "{}_0", "9" * 10, "9" * 19, "9" * 40, "\N{FULLWIDTH DIGIT ONE}"]
)
async def test_no_spelling_of_an_id_gets_around_the_look(admin: AdminHarness, things: Things, text: str) -> None:
    other = await make_group(admin, "invoices")
    async with token_client(admin, access="write", group_id=other) as client:
        for path in ("jobs", "groups", "runs"):
            assert (await client.get(f"/api/v1/{path}/{text.format(things.job_id)}")).status_code == 404


async def test_a_write_token_makes_no_script(admin: AdminHarness, things: Things) -> None:
    new = {"group_id": things.group_id, "name": "new", "schedule_type": "NONE"}
    async with of_group(admin, things) as client:
        for body in ({**new, **SCRIPT}, {**new, "handler": "settle", "glue_source": "echo"}):
            assert error(await client.post("/api/v1/jobs", json=body), 403)["code"] == "forbidden"
        assert (await client.post("/api/v1/jobs", json={**new, "handler": "settle"})).status_code == 201


async def test_events_name_the_token(admin: AdminHarness, things: Things) -> None:
    async with of_group(admin, things) as client:
        await client.post(f"/api/v1/jobs/{things.job_id}/run")
    events = answer(await admin.client.get(f"/api/v1/jobs/{things.job_id}/events"))["items"]
    assert (events[0]["kind"], events[0]["actor"]) == ("run.triggered", "token:1:deploy")


async def test_the_use_cases_look_again_in_their_transaction(admin: AdminHarness, things: Things) -> None:
    """The gate looked before; meanwhile the job may have been moved away."""
    other = frozenset([GroupId(things.group_id + 1)])
    services, job_id, script_id = admin.services, JobId(things.job_id), JobId(things.script_job_id)
    jobs, before = services.jobs.within(other), await everything(admin)
    tries: list[Awaitable[object]] = [
        jobs.update(job_id, {"name": "x"}, version=None, actor="t"),
        jobs.delete(job_id, actor="t"),
        jobs.start(job_id, actor="t"),
        jobs.stop(job_id, actor="t"),
        services.triggers.within(other).trigger(job_id, Trigger(TriggerType.API), actor="t"),
        services.scripts.within(other).save(script_id, "echo", "a try", version=None, actor="t"),
        services.backfills.within(other).make(job_id, BackfillWish(NOW_MS - 60_000, NOW_MS - 1), actor="t"),
        services.backfills.within(other).make(job_id, BackfillWish(1, 2, dry_run=True), actor="t"),
        services.backfills.within(other).cancel(job_id, actor="t"),
        services.kills.within(other).kill_run(RunId(things.run_id), by_job=False, actor="t"),
        services.kills.within(other).kill_job_runs(job_id, by_job=False, actor="t"),
        services.reruns.within(other).rerun([RunId(things.done_run_id)], actor="t"),
        services.clean_ups.within(other).cancel(CleanUpId(things.clean_up_id), actor="t"),
    ]
    for each in tries:
        with pytest.raises(NotFoundError):
            await each
    new = {"group_id": things.group_id, "name": "new", "handler": "settle", "schedule_type": "NONE"}
    with pytest.raises(NotFoundError, match="group"):
        await jobs.create(new, running=False, actor="t")
    assert await everything(admin) == before
    assert (await services.jobs.stop(job_id, actor="t")).id == job_id


async def test_the_status_page_shows_nothing_of_groups_that_are_not_his(admin: AdminHarness, things: Things) -> None:
    assert "settle accounts" in (await admin.client.get("/")).text
    await admin.database.write(lambda c: c.execute(job_user.update().values(role_name=Role.VIEWER.value)))
    page = await admin.client.get("/")
    assert page.status_code == 200
    assert "settle accounts" not in page.text
    assert "billing" not in page.text
