"""Texts that not every database can store, or be asked about: refused in words, on each kind of it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.services.registry import Registry
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import RegistryRequest
from tests.support.admin_harness import AdminHarness, admin_harness
from tests.support.admin_jobs import answer, error, make_job
from tests.support.run_servers import Servers
from tests.support.store import KINDS

JSON = {"Content-Type": "application/json"}
HALF = b"\\ud800"


@pytest.fixture(params=KINDS)
async def admin(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> AsyncIterator[AdminHarness]:
    url = None if request.param == "sqlite" else servers.url_of(request.param)
    async with admin_harness(tmp_path, database_url=url) as harness:
        yield harness


@pytest.mark.parametrize("name", ["\0", "admin\0", "\0admin"])
async def test_a_name_that_nobody_can_have_signs_nobody_in(admin: AdminHarness, name: str) -> None:
    reply = await admin.guest.post("/api/v1/session", json={"username": name, "password": admin.password})
    assert error(reply, 422)["field"] == "username"
    reply = await admin.guest.post("/sign-in", data={"username": name, "password": admin.password})
    assert reply.status_code == 401


@pytest.mark.parametrize("field", ["name", "tag", "handler"])
@pytest.mark.parametrize(("text", "part"), [("a\0", "U+0000"), ("x" * 100_000, "at most 255")])
async def test_what_no_job_can_hold_is_not_looked_for(admin: AdminHarness, field: str, text: str, part: str) -> None:
    await make_job(admin)
    for reply in (
        await admin.client.get("/api/v1/jobs", params={field: text[:50_001]}),
        await admin.client.post("/api/v1/jobs/bulk", json={"action": "stop", field: text, "dry_run": True}),
    ):
        refused = error(reply, 422)
        assert (refused["field"], part in refused["message"]) == (field, True)


@pytest.mark.parametrize("path", ["groups/%00/jobs/key", "groups/orders/jobs/%00", "jobs/export?app_name=%00"])
async def test_nor_as_a_part_of_a_path(admin: AdminHarness, path: str) -> None:
    await make_job(admin, key="settle")
    assert "U+0000" in error(await admin.client.get(f"/api/v1/{path}"), 422)["message"]
    if "export" not in path:
        assert "U+0000" in error(await admin.client.delete(f"/api/v1/{path}"), 422)["message"]
        assert "U+0000" in error(await admin.client.post(f"/api/v1/{path}/run"), 422)["message"]
        body = {"name": "n", "handler": "h", "schedule_type": "NONE"}
        assert error(await admin.client.put(f"/api/v1/{path}", json=body), 422)


@pytest.mark.parametrize(
    "fields",
    [
        {"app_name": "\0"},
        {"key": "\0"},
        {"children": ["\0/a"]},
        {"children": ["\0"]},
        {"tags": ["\0"]},
        {"alarm_settings": {"channels": ["\0"]}},
        {"glue_type": "GLUE_SHELL", "handler": "", "glue_source": "\0"},
    ],
)
async def test_nor_in_a_document(admin: AdminHarness, fields: dict[str, Any]) -> None:
    job = await make_job(admin, key="settle")
    app_name = answer(await admin.client.get(f"/api/v1/groups/{job['group_id']}"))["app_name"]
    entry = {"app_name": app_name, "key": "a", "name": "n", "handler": "h", "schedule_type": "NONE", **fields}
    for route in ("plan", "apply"):
        assert error(await admin.client.post(f"/api/v1/jobs/{route}", json={"jobs": [entry]}), 422)


async def test_nor_an_address_that_no_run_can_have(admin: AdminHarness) -> None:
    refused = error(await admin.client.get("/api/v1/runs", params={"executor_address": "http://a\0/"}), 422)
    assert refused["field"] == "executor_address"


async def test_half_a_character_is_refused_wherever_it_stands(admin: AdminHarness) -> None:
    job = await make_job(admin, glue_type="GLUE_SHELL", handler="")
    script, group_id = f"/api/v1/jobs/{job['id']}/script", job["group_id"]
    entry = b'{"app_name": "orders", "key": "%s", "name": "n", "schedule_type": "NONE", "handler": "h"}'
    bodies: list[tuple[str, str, bytes, str]] = [
        ("PUT", script, b'{"source": "%s", "remark": "first"}', "source"),
        ("PUT", script, b'{"source": "echo", "remark": "first%s"}', "remark"),
        ("POST", "/api/v1/jobs/bulk", b'{"action": "stop", "tag": "%s"}', "tag"),
        ("POST", "/api/v1/jobs/plan", b'{"jobs": [%s]}' % entry, "jobs[0].key"),
        ("POST", "/api/v1/jobs/apply", b'{"groups": [{"app_name": "%s", "title": "t"}]}', "groups[0].app_name"),
        ("POST", "/api/v1/jobs/apply", b'{"fingerprint": "%s"}', "fingerprint"),
        ("POST", f"/api/v1/groups/{group_id}/drain", b'{"address": "%s"}', "address"),
        ("POST", "/api/v1/tokens", b'{"name": "%s"}', "name"),
        ("POST", "/api/v1/alarm-channels", _channel(b'{"url": "http://hooks.example.com/%s"}'), "settings"),
        ("POST", "/api/v1/alarm-channels", _channel(b'{"a": [{"%s": 1}]}'), "settings"),
    ]
    for method, path, body, field in bodies:
        reply = await admin.client.request(method, path, content=body % HALF, headers=JSON)
        refused = error(reply, 422)
        assert (refused["field"], "surrogate" in refused["message"]) == (field, True), refused


async def test_whole_characters_beyond_the_first_plane_pass(admin: AdminHarness) -> None:
    job = await make_job(admin, glue_type="GLUE_SHELL", handler="")
    body = b'{"source": "echo \\ud83d\\ude00", "remark": "first"}'
    saved = answer(await admin.client.put(f"/api/v1/jobs/{job['id']}/script", content=body, headers=JSON))
    assert saved["source"] == "echo \N{GRINNING FACE}"


async def test_an_address_that_nobody_can_have_registered_is_not_removed(admin: AdminHarness) -> None:
    registry = Registry(admin.database, admin.clock, admin.zone, AddressBook(admin.database), auto_create_groups=False)
    good: dict[str, Any] = {"registry_group": "EXECUTOR", "registry_key": "orders", "registry_value": "http://a:1/"}
    for field in good:
        with pytest.raises(MalformedMessageError) as caught:
            await registry.remove(RegistryRequest(**{**good, field: "a\0"}))
        assert "U+0000" in caught.value.message
    await registry.remove(RegistryRequest(**good))


def _channel(settings: bytes) -> bytes:
    return b'{"name": "c", "kind": "webhook", "settings": %s}' % settings
