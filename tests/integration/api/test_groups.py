"""Groups over REST."""

import pytest

from jobwheel.admin.engine.executor_answers import Answer, AnswerKind
from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import Json, answer, error, make_group, make_job, register

FIXED: Json = {"address_type": "fixed", "addresses": ["http://10.0.0.7:9999/", "https://executor.example.com/jobs"]}


async def read(admin: AdminHarness, group_id: int) -> dict[str, object]:
    return answer(await admin.client.get(f"/api/v1/groups/{group_id}"))


async def test_a_group_is_fed_by_registration_unless_it_is_fixed(admin: AdminHarness) -> None:
    reply = await admin.client.post("/api/v1/groups", json={"app_name": "orders", "title": "Bestellungen 订单"})
    group = answer(reply, 201)
    expected = {
        "app_name": "orders",
        "title": "Bestellungen 订单",
        "address_type": "registered",
        "addresses": [],
        "live_addresses": [],
        "updated_at": "2026-11-27T02:30:00.000Z",
        "version": 0,
    }
    assert {**group, "updated_at": expected["updated_at"]} == {"id": group["id"], **expected}
    assert await read(admin, group["id"]) == {"id": group["id"], **expected}


async def test_live_addresses_are_those_that_beat_within_90_seconds(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", "http://10.0.0.8:9999/", "i-8")
    await admin.clock.advance(60)
    await register(admin, "orders", "http://10.0.0.7:9999/", "i-7", queued=20)
    await register(admin, "others", "http://10.0.0.9:9999/")
    live = (await read(admin, group_id))["live_addresses"]
    assert live == [
        {
            "address": "http://10.0.0.7:9999/",
            "last_beat_at": "2026-11-27T02:31:00.250Z",
            "instance_id": "i-7",
            "draining": False,
            "load": {"running": 0, "queued": 20, "unreported": 0, "abandoned": 0},
        },
        {
            "address": "http://10.0.0.8:9999/",
            "last_beat_at": "2026-11-27T02:30:00.250Z",
            "instance_id": "i-8",
            "draining": False,
            "load": {"running": 0, "queued": 0, "unreported": 0, "abandoned": 0},
        },
    ]
    await admin.clock.advance(31)
    listed = answer(await admin.client.get("/api/v1/groups"))["items"][0]["live_addresses"]
    assert [each["instance_id"] for each in listed] == ["i-7"]


async def test_a_fixed_list_keeps_its_order_and_is_live_without_beats(admin: AdminHarness) -> None:
    group_id = await make_group(admin, **FIXED)
    group = await read(admin, group_id)
    assert group["addresses"] == FIXED["addresses"]
    assert group["live_addresses"] == [
        {"address": address, "last_beat_at": None, "instance_id": None, "draining": False, "load": None}
        for address in FIXED["addresses"]
    ]


async def test_a_patch_changes_only_what_it_gives(admin: AdminHarness) -> None:
    group_id = await make_group(admin, **FIXED)
    changed = answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "New"}))
    assert (changed["title"], changed["addresses"], changed["version"]) == ("New", FIXED["addresses"], 1)
    again = answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "New"}))
    assert again["version"] == 1


async def test_a_group_may_change_between_the_kinds(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    fixed = answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json=FIXED))
    assert fixed["addresses"] == FIXED["addresses"]
    body = {"address_type": "registered"}
    registered = answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json=body))
    assert (registered["address_type"], registered["addresses"]) == ("registered", [])


async def test_an_old_version_is_a_conflict(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    answer(await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "first", "version": 0}))
    reply = await admin.client.patch(f"/api/v1/groups/{group_id}", json={"title": "second", "version": 0})
    assert error(reply, 409)["code"] == "version_conflict"


async def test_an_app_name_is_taken_once(admin: AdminHarness) -> None:
    await make_group(admin)
    other = await make_group(admin, "bills")
    reply = await admin.client.post("/api/v1/groups", json={"app_name": "orders", "title": "t"})
    assert error(reply, 409) == {
        "code": "taken",
        "message": "app_name: 'orders' is taken by group 1",
        "field": "app_name",
    }
    error(await admin.client.patch(f"/api/v1/groups/{other}", json={"app_name": "orders"}), 409)


async def test_a_group_with_jobs_cannot_be_deleted(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    job = await make_job(admin, group_id)
    refused = error(await admin.client.delete(f"/api/v1/groups/{group_id}"), 409)
    assert (refused["code"], "1 job" in refused["message"]) == ("group_in_use", True)
    assert (await admin.client.delete(f"/api/v1/jobs/{job['id']}")).status_code == 204
    assert (await admin.client.delete(f"/api/v1/groups/{group_id}")).status_code == 204
    error(await admin.client.get(f"/api/v1/groups/{group_id}"), 404)


async def test_pages(admin: AdminHarness) -> None:
    made = [await make_group(admin, f"group-{number}") for number in range(3)]
    first = answer(await admin.client.get("/api/v1/groups", params={"limit": 2}))
    second = answer(await admin.client.get("/api/v1/groups", params={"limit": 2, "after": first["next"]}))
    assert [group["id"] for group in first["items"] + second["items"]] == made
    assert second["next"] is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"app_name": "abc"}, "app_name"),
        ({"app_name": "x" * 65}, "app_name"),
        ({"app_name": "-abcd"}, "app_name"),
        ({"app_name": "with blank"}, "app_name"),
        ({"app_name": "quo'te"}, "app_name"),
        ({"app_name": "订单订单"}, "app_name"),
        ({"app_name": "abcd\n"}, "app_name"),
        ({"app_name": None}, "app_name"),
        ({"title": ""}, "title"),
        ({"title": "x" * 65}, "title"),
        ({"title": 5}, "title"),
        ({"address_type": "dns"}, "address_type"),
        ({"address_type": 1}, "address_type"),
        ({"address_type": "fixed"}, "addresses"),
        ({"address_type": "fixed", "addresses": []}, "addresses"),
        ({"addresses": ["http://10.0.0.7/"]}, "addresses"),
        ({"address_type": "fixed", "addresses": "http://10.0.0.7/"}, "addresses"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_a_wrong_field_is_refused(admin: AdminHarness, fields: dict[str, object], field: str) -> None:
    group_id = await make_group(admin, "other-app")
    body = {"app_name": "orders", "title": "Orders", **fields}
    assert error(await admin.client.post("/api/v1/groups", json=body), 422)["field"] == field
    assert error(await admin.client.patch(f"/api/v1/groups/{group_id}", json=fields), 422)["field"] == field
    assert [group["version"] for group in answer(await admin.client.get("/api/v1/groups"))["items"]] == [0]


@pytest.mark.parametrize(
    "address",
    [
        "",
        "10.0.0.7:9999",
        "ftp://10.0.0.7/",
        "file:///etc/passwd",
        "http://",
        "http://:9999/",
        "http://10.0.0.7:99999/",
        "http://10.0.0.7:0/",
        "http://10.0.0.7:port/",
        "http://user:secret@10.0.0.7/",
        "http://10.0.0.7/?a=b",
        "http://10.0.0.7/#x",
        "http://10.0.0.7/ http://10.0.0.8/",
        "http://10.0.0.7/,http://10.0.0.8/",
        "http://10.0.0.7\\@evil.example/",
        "http://[::1/",
        "http://10.0.0.7/\r\nX: y",
        "http://10.0.0.7/" + "x" * 255,
    ],
)
async def test_what_is_no_address(admin: AdminHarness, address: str) -> None:
    body = {"app_name": "orders", "title": "Orders", "address_type": "fixed", "addresses": [address]}
    assert error(await admin.client.post("/api/v1/groups", json=body), 422)["field"] == "addresses"


@pytest.mark.parametrize("address", ["http://[::1]:9999/", "https://executor.example.com", "http://localhost:80/x/y"])
async def test_what_is_an_address(admin: AdminHarness, address: str) -> None:
    group_id = await make_group(admin, address_type="fixed", addresses=[f" {address} ", address])
    assert (await read(admin, group_id))["addresses"] == [address]


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (AnswerKind.REJECTED, "refused"),
        (AnswerKind.STOPPING, "refused"),
        (AnswerKind.UNCONFIRMED, "no_answer"),
        (AnswerKind.UNREACHABLE, "unreachable"),
    ],
)
async def test_an_executor_that_registers_and_is_not_alive_to_the_admin(
    admin: AdminHarness, kind: AnswerKind, state: str
) -> None:
    group_id = await make_group(admin)
    await register(admin, "orders", "http://10.0.0.8:9999/")
    asked = {"address": "http://10.0.0.8:9999"}
    found = answer(await admin.client.post(f"/api/v1/groups/{group_id}/probe", json=asked))
    assert found == {"address": "http://10.0.0.8:9999/", "state": "alive", "message": "", "took_ms": 0}
    admin.log_source.answer = Answer(kind, 500, "why")
    found = answer(await admin.client.post(f"/api/v1/groups/{group_id}/probe", json=asked))
    assert found == {"address": "http://10.0.0.8:9999/", "state": state, "message": "why", "took_ms": 0}


async def test_nobody_is_probed_but_the_executors_of_the_group(admin: AdminHarness) -> None:
    group_id = await make_group(admin)
    await register(admin, "others", "http://10.0.0.9:9999/")
    reply = await admin.client.post(f"/api/v1/groups/{group_id}/probe", json={"address": "http://10.0.0.9:9999/"})
    assert error(reply, 422)["field"] == "address"
