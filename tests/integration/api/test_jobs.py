"""Jobs over REST: what is kept, what is refused, and who comes first when two change the same one."""

import asyncio

import pytest

from jobwheel.admin.domain.policies import RouteStrategy
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import (
    EVERY_5_S,
    Json,
    answer,
    error,
    event_kinds,
    make_group,
    make_job,
    patch_job,
    read_events,
    read_job,
)

FULL: Json = {
    "name": "Abrechnung — 结算 ✓",
    "author": "Ada",
    "alarm_email": "ada@example.com,bob@example.com",
    "schedule_type": "FIX_RATE",
    "schedule_conf": "60",
    "time_zone": "America/New_York",
    "anchor_at": "2026-01-01T00:00:00.000Z",
    "misfire_strategy": "FIRE_ONCE_NOW",
    "route_strategy": "ROUND",
    "handler": "settleAccounts",
    "parameter": 'day=2026-11-26\n{"x": "é\t"}',
    "block_strategy": "COVER_EARLY",
    "timeout_s": 2147483647,
    "retry_count": 3,
    "retry_interval_s": 10,
    "retry_backoff": "DOUBLING",
    "retry_most_s": 600,
    "uncertain_send": "SEND_AGAIN",
    "glue_type": "BEAN",
    "child_job_ids": [],
    "key": "settle",
    "tags": ["nightly", "money"],
}


async def test_everything_that_is_given_is_kept(admin: AdminHarness) -> None:
    job = await make_job(admin, **FULL)
    assert {name: job[name] for name in FULL} == FULL
    assert await read_job(admin, job["id"]) == job
    assert (job["created_at"], job["version"]) == ("2026-11-27T02:30:00.250Z", 0)


@pytest.mark.parametrize("strategy", RouteStrategy)
async def test_a_job_may_have_any_route_strategy(admin: AdminHarness, strategy: str) -> None:
    assert (await make_job(admin, route_strategy=strategy))["route_strategy"] == strategy


async def test_what_is_left_out_has_the_defaults(admin: AdminHarness) -> None:
    job = await make_job(admin)
    expected: Json = {
        "author": "",
        "time_zone": None,
        "misfire_strategy": "DO_NOTHING",
        "route_strategy": "FIRST",
        "block_strategy": "SERIAL_EXECUTION",
        "glue_type": "BEAN",
        "retry_count": 0,
        "retry_interval_s": 0,
        "retry_backoff": "FIXED",
        "retry_most_s": None,
        "uncertain_send": "ASK",
        "child_job_ids": [],
        "parameter": "",
        "key": None,
        "tags": [],
    }
    assert {name: job[name] for name in expected} == expected


async def test_a_patch_changes_only_what_it_gives(admin: AdminHarness) -> None:
    job = await make_job(admin, **FULL)
    admin.clock.step(1)
    changed = await patch_job(admin, job["id"], author="Bob", tags=[" a ", "b", "a"])
    expected = {**job, "author": "Bob", "tags": ["a", "b"], "version": 1, "updated_at": "2026-11-27T02:30:01.250Z"}
    assert changed == expected


async def test_the_events_tell_who_did_what(admin: AdminHarness) -> None:
    job = await make_job(admin, running=True)
    await patch_job(admin, job["id"], name="other")
    created, updated = await read_events(admin, job["id"])
    assert (created["kind"], created["actor"], created["job_id"]) == ("job.created", "admin", job["id"])
    assert created["details"]["schedule_conf"] == EVERY_5_S["schedule_conf"]
    assert created["details"]["running"] is True
    assert updated["details"] == {"before": {"name": "settle accounts"}, "after": {"name": "other"}}


async def test_an_old_version_is_a_conflict(admin: AdminHarness) -> None:
    job = await make_job(admin)
    await patch_job(admin, job["id"], name="first", version=0)
    refused = error(await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"name": "second", "version": 0}), 409)
    assert (refused["code"], refused["field"]) == ("version_conflict", "version")
    assert (await read_job(admin, job["id"]))["name"] == "first"


async def test_parallel_edits_of_different_fields_lose_neither(admin: AdminHarness) -> None:
    job = await make_job(admin)
    edits = [{"name": "new"}, {"author": "Eve"}, {"parameter": "p"}, {"handler": "h"}]
    await asyncio.gather(*(patch_job(admin, job["id"], **edit) for edit in edits))
    found = await read_job(admin, job["id"])
    assert [found[name] for name in ("name", "author", "parameter", "handler", "version")] == [
        "new",
        "Eve",
        "p",
        "h",
        4,
    ]


async def test_a_key_is_taken_once_per_group(admin: AdminHarness) -> None:
    first, second = await make_group(admin), await make_group(admin, "bills")
    job = await make_job(admin, first, key="settle")
    await make_job(admin, second, key="settle")
    body = {"group_id": first, "name": "n", "handler": "h", "schedule_type": "NONE", "key": "settle"}
    refused = error(await admin.client.post("/api/v1/jobs", json=body), 409)
    assert (refused["code"], refused["field"]) == ("taken", "key")
    await patch_job(admin, job["id"], key="settle", name="still mine")
    moved = error(await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"group_id": second}), 409)
    assert moved["field"] == "key"


async def test_a_job_of_no_group_is_refused(admin: AdminHarness) -> None:
    body = {"group_id": 77, "name": "n", "handler": "h", "schedule_type": "NONE"}
    assert "group 77" in error(await admin.client.post("/api/v1/jobs", json=body), 404)["message"]
    job = await make_job(admin)
    error(await admin.client.patch(f"/api/v1/jobs/{job['id']}", json={"group_id": 77}), 404)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/start"),
        ("POST", "/stop"),
        ("POST", "/run"),
        ("GET", "/preview"),
        ("GET", "/events"),
    ],
)
async def test_an_unknown_job_is_not_found(admin: AdminHarness, method: str, path: str) -> None:
    body: Json | None = {} if method == "PATCH" else None
    refused = error(await admin.client.request(method, f"/api/v1/jobs/4711{path}", json=body), 404)
    assert refused == {"code": "not_found", "message": "there is no job 4711", "field": None}


class TestList:
    async def test_pages_go_by_ascending_id_and_miss_nothing(self, admin: AdminHarness) -> None:
        group_id = await make_group(admin)
        made = [(await make_job(admin, group_id, name=f"job {number}"))["id"] for number in range(5)]
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor is not None:
            after = "" if cursor is None else f"&after={cursor}"
            page = answer(await admin.client.get(f"/api/v1/jobs?limit=2{after}"))
            found += [job["id"] for job in page["items"]]
            cursor, pages = page["next"], pages + 1
        assert (found, pages) == (made, 3)

    async def test_a_last_page_that_is_full_has_no_next(self, admin: AdminHarness) -> None:
        group_id = await make_group(admin)
        for _ in range(2):
            await make_job(admin, group_id)
        assert answer(await admin.client.get("/api/v1/jobs", params={"limit": 2}))["next"] is None

    @pytest.mark.parametrize(
        ("params", "names"),
        [
            ({}, ["alpha", "beta_100%", "gamma"]),
            ({"status": "running"}, ["beta_100%"]),
            ({"status": "stopped"}, ["alpha", "gamma"]),
            ({"handler": "h1"}, ["alpha"]),
            ({"name": "a_1"}, ["beta_100%"]),
            ({"name": "%"}, ["beta_100%"]),
            ({"name": "nothing"}, []),
            ({"group_id": 2}, ["gamma"]),
            ({"group_id": 2, "status": "running"}, []),
        ],
    )
    async def test_filters(self, admin: AdminHarness, params: dict[str, str], names: list[str]) -> None:
        first, second = await make_group(admin), await make_group(admin, "bills")
        await make_job(admin, first, name="alpha", handler="h1")
        await make_job(admin, first, name="beta_100%", running=True)
        await make_job(admin, second, name="gamma")
        page = answer(await admin.client.get("/api/v1/jobs", params=params))
        assert [job["name"] for job in page["items"]] == names

    async def test_events_page_backwards(self, admin: AdminHarness) -> None:
        job = await make_job(admin)
        for number in range(3):
            await patch_job(admin, job["id"], name=f"name {number}")
        path = f"/api/v1/jobs/{job['id']}/events"
        first = answer(await admin.client.get(path, params={"limit": 3}))
        second = answer(await admin.client.get(path, params={"limit": 3, "after": first["next"]}))
        assert [each["kind"] for each in first["items"] + second["items"]] == ["job.updated"] * 3 + ["job.created"]
        assert second["next"] is None
        assert await event_kinds(admin, job["id"]) == ["job.created"] + ["job.updated"] * 3


class TestPreview:
    async def test_of_a_job_in_its_zone(self, admin: AdminHarness) -> None:
        job = await make_job(admin, schedule_conf="0 0 12 * * ?", time_zone="Europe/Berlin")
        preview = answer(await admin.client.get(f"/api/v1/jobs/{job['id']}/preview", params={"count": 2}))
        assert preview["times"] == ["2026-11-27T11:00:00.000Z", "2026-11-28T11:00:00.000Z"]
        assert preview["description"]

    async def test_from_a_moment_that_is_not_counted(self, admin: AdminHarness) -> None:
        params = {"schedule_type": "CRON", "schedule_conf": "0 0 12 * * ?", "from": "2027-01-01T12:00:00+08:00"}
        preview = answer(await admin.client.get("/api/v1/schedule/preview", params={**params, "count": "1"}))
        assert preview["times"] == ["2027-01-02T04:00:00.000Z"]

    @pytest.mark.parametrize(
        ("accepted", "words"),
        [
            ("en-GB,en;q=0.9", "every 5 minutes"),
            ("zh-CN,zh;q=0.9,en;q=0.8", "每 5 分钟"),
            ("zh-TW", "每 5 分鐘"),
            ("fr,zh;q=0.5", "每 5 分钟"),
            ("fr", "every 5 minutes"),
            ("", "every 5 minutes"),
        ],
    )
    async def test_the_description_is_in_the_language_asked_for(
        self, admin: AdminHarness, accepted: str, words: str
    ) -> None:
        params = {"schedule_type": "CRON", "schedule_conf": "0 0/5 * * * ?"}
        reply = await admin.client.get("/api/v1/schedule/preview", params=params, headers={"Accept-Language": accepted})
        assert answer(reply)["description"] == words

    async def test_a_schedule_that_ends_has_fewer_times(self, admin: AdminHarness) -> None:
        params = {"schedule_type": "ONCE", "schedule_conf": "2026-12-01T02:00:00", "time_zone": "UTC"}
        preview = answer(await admin.client.get("/api/v1/schedule/preview", params=params))
        assert preview["times"] == ["2026-12-01T02:00:00.000Z"]

    @pytest.mark.parametrize(
        ("params", "field"),
        [
            ({"schedule_type": "CRON", "schedule_conf": "0 0 25 * * ?"}, "schedule_conf"),
            ({"schedule_type": "CRON", "schedule_conf": ""}, "schedule_conf"),
            ({"schedule_type": "SOMETIMES"}, "schedule_type"),
            ({"schedule_type": "NONE", "time_zone": "Mars/Olympus"}, "time_zone"),
            ({"schedule_type": "NONE", "count": "0"}, "count"),
            ({"schedule_type": "NONE", "count": "101"}, "count"),
            ({"schedule_type": "NONE", "count": "many"}, "count"),
            ({"schedule_type": "NONE", "from": "yesterday"}, "from"),
            ({"schedule_conf": "60"}, "schedule_type"),
        ],
    )
    async def test_bad_queries(self, admin: AdminHarness, params: dict[str, str], field: str) -> None:
        assert error(await admin.client.get("/api/v1/schedule/preview", params=params), 422)["field"] == field
