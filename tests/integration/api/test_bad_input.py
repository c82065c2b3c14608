"""What is wrong is refused in one clear line that names it, and nothing is half done."""

from typing import Any

import pytest

from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import answer, error, make_group, make_job, read_job

JSON = {"Content-Type": "application/json"}

BEFORE, AFTER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
WINDOW = {"from": BEFORE, "until": AFTER}
WRONG_FIELDS: list[tuple[dict[str, Any], str, str, str]] = [
    ({"name": ""}, "name", "invalid", "is required"),
    ({"name": "   "}, "name", "invalid", "is required"),
    ({"name": "x" * 256}, "name", "invalid", "at most 255"),
    ({"name": 5}, "name", "invalid", "is not a text"),
    ({"name": None}, "name", "invalid", "is not a text"),
    ({"name": "a\x00b"}, "name", "invalid", "U+0000"),
    ({"name": "a\nb"}, "name", "invalid", "U+000A"),
    ({"author": "x" * 65}, "author", "invalid", "at most 64"),
    ({"alarm_email": "x" * 256}, "alarm_email", "invalid", "at most 255"),
    ({"handler": ""}, "handler", "invalid", "BEAN"),
    ({"handler": "x" * 256}, "handler", "invalid", "at most 255"),
    ({"parameter": "x" * 65_536}, "parameter", "invalid", "at most 65535"),
    ({"parameter": "é" * 32_768}, "parameter", "invalid", "65536 bytes"),
    ({"parameter": {"a": 1}}, "parameter", "invalid", "is not a text"),
    ({"schedule_type": "HOURLY"}, "schedule_type", "invalid", "FIX_RATE"),
    ({"schedule_conf": "0 0 25 * * ?"}, "schedule_conf", "schedule_invalid", "hour"),
    ({"schedule_conf": "* * * * *"}, "schedule_conf", "schedule_invalid", ""),
    ({"schedule_conf": "0" * 129}, "schedule_conf", "invalid", "at most 128"),
    ({"schedule_type": "FIX_RATE", "schedule_conf": "0"}, "schedule_conf", "schedule_invalid", "interval"),
    ({"schedule_type": "FIX_RATE", "schedule_conf": "1.5"}, "schedule_conf", "schedule_invalid", "interval"),
    ({"schedule_type": "ONCE", "schedule_conf": "tomorrow"}, "schedule_conf", "schedule_invalid", "tomorrow"),
    ({"time_zone": "Mars/Olympus"}, "time_zone", "schedule_invalid", "Mars/Olympus"),
    ({"time_zone": ""}, "time_zone", "invalid", "is required"),
    ({"anchor_at": "2026-11-27T00:00:00Z"}, "anchor_at", "invalid", "FIX_RATE"),
    ({"anchor_at": "soon"}, "anchor_at", "invalid", "soon"),
    ({"anchor_at": 1795746600250}, "anchor_at", "invalid", "is not a text"),
    ({"misfire_strategy": "x"}, "misfire_strategy", "invalid", "DO_NOTHING"),
    ({"route_strategy": "first"}, "route_strategy", "invalid", "FIRST"),
    ({"block_strategy": "x"}, "block_strategy", "invalid", "SERIAL_EXECUTION"),
    ({"timeout_s": 2**31}, "timeout_s", "invalid", "from 0"),
    ({"timeout_s": -1}, "timeout_s", "invalid", "-1"),
    ({"timeout_s": "0"}, "timeout_s", "invalid", "is not a whole number"),
    ({"timeout_s": 0.5}, "timeout_s", "invalid", "whole number"),
    ({"timeout_s": True}, "timeout_s", "invalid", "is not a whole number"),
    ({"retry_count": -1}, "retry_count", "invalid", "-1 is not from 0"),
    ({"retry_count": 1001}, "retry_count", "invalid", "to 1000"),
    ({"retry_interval_s": -1}, "retry_interval_s", "invalid", "-1 is not from 0"),
    ({"retry_interval_s": 2_592_001}, "retry_interval_s", "invalid", "to 2592000"),
    ({"retry_interval_s": 0.5}, "retry_interval_s", "invalid", "whole number"),
    ({"retry_backoff": "doubling"}, "retry_backoff", "invalid", "DOUBLING"),
    ({"retry_most_s": 0}, "retry_most_s", "invalid", "from 1 to"),
    ({"retry_interval_s": 60, "retry_most_s": 59}, "retry_most_s", "invalid", "59 s is less than retry_interval_s"),
    ({"uncertain_send": "AGAIN"}, "uncertain_send", "invalid", "SEND_AGAIN"),
    ({"glue_type": "GLUE_LUA"}, "glue_type", "invalid", "GLUE_SHELL"),
    ({"child_job_ids": [999, 1000]}, "child_job_ids", "invalid", "there is no job 999, 1000"),
    ({"child_job_ids": list(range(100, 170))}, "child_job_ids", "invalid", "255 have room"),
    ({"child_job_ids": [2**31]}, "child_job_ids[0]", "invalid", "less"),
    ({"child_job_ids": "1"}, "child_job_ids", "invalid", "is not a list"),
    ({"child_job_ids": [0]}, "child_job_ids[0]", "invalid", "greater"),
    ({"key": ""}, "key", "invalid", "is required"),
    ({"key": "x" * 129}, "key", "invalid", "at most 128"),
    ({"tags": "a"}, "tags", "invalid", "is not a list"),
    ({"tags": ["a", 1]}, "tags[1]", "invalid", "is not a text"),
    ({"tags": ["a,b"]}, "tags", "invalid", "comma"),
    ({"tags": [""]}, "tags", "invalid", "is required"),
    ({"tags": ["x" * 100, "y" * 100, "z" * 100]}, "tags", "invalid", "at most 255"),
    ({"group_id": 0}, "group_id", "invalid", "greater"),
    ({"group_id": "1"}, "group_id", "invalid", "is not a whole number"),
    ({"group_id": 10**30}, "group_id", "invalid", ""),
    ({"group_id": None}, "group_id", "invalid", "is not a whole number"),
    ({"valid_from": "tomorrow"}, "valid_from", "invalid", "'tomorrow' is not an instant"),
    ({"valid_until": 1795746600250}, "valid_until", "invalid", "is not a text"),
    ({"valid_from": BEFORE, "valid_until": BEFORE}, "valid_until", "invalid", "is not after valid_from"),
    ({"pause_windows": {}}, "pause_windows", "invalid", "is not a list"),
    ({"pause_windows": None}, "pause_windows", "invalid", "is not a list"),
    ({"pause_windows": ["now"]}, "pause_windows[0]", "invalid", "is not a JSON object"),
    ({"pause_windows": [WINDOW, {}]}, "pause_windows[1].from", "invalid", "is required"),
    ({"pause_windows": [{**WINDOW, "colour": "red"}]}, "pause_windows[0].colour", "invalid", "is not known here"),
    ({"pause_windows": [WINDOW, {**WINDOW, "from": "x"}]}, "pause_windows[1].from", "invalid", "'x' is not an instant"),
    (
        {"pause_windows": [WINDOW, WINDOW, {"from": AFTER, "until": BEFORE}]},
        "pause_windows[2].until",
        "invalid",
        "pause_windows[2].until: 2026-01-01T00:00:00.000Z is not after its from",
    ),
    (
        {"pause_windows": [{"from": AFTER, "until": AFTER}]},
        "pause_windows[0].until",
        "invalid",
        "is not after its from",
    ),
    ({"pause_windows": [{**WINDOW, "remark": "x" * 129}]}, "pause_windows[0].remark", "invalid", "at most 128"),
    ({"pause_windows": [{**WINDOW, "remark": "a\n"}]}, "pause_windows[0].remark", "invalid", "U+000A"),
    ({"pause_windows": [WINDOW] * 101}, "pause_windows", "invalid", "at most 100"),
    ({"run_limit": 0}, "run_limit", "invalid", "from 1 to"),
    ({"run_limit_overflow": "DROP"}, "run_limit_overflow", "invalid", "WAIT"),
    ({"colour": "red"}, "colour", "invalid", "is not known here"),
    ({"id": 7}, "id", "invalid", "is not known here"),
]


@pytest.mark.parametrize(("fields", "field", "code", "part"), WRONG_FIELDS, ids=lambda value: repr(value)[:40])
async def test_a_wrong_field_is_refused_at_create_and_at_edit(
    admin: AdminHarness, fields: dict[str, Any], field: str, code: str, part: str
) -> None:
    job = await make_job(admin)
    body = {"group_id": job["group_id"], "name": "n", "handler": "h", "schedule_type": "CRON"}
    body = {**body, "schedule_conf": "0/5 * * * * ?", **fields}
    for reply in (
        await admin.client.post("/api/v1/jobs", json=body),
        await admin.client.patch(f"/api/v1/jobs/{job['id']}", json=fields),
    ):
        refused = error(reply, 422)
        assert (refused["code"], refused["field"]) == (code, field)
        assert part in refused["message"]
    assert await read_job(admin, job["id"]) == job
    assert len(answer(await admin.client.get("/api/v1/jobs"))["items"]) == 1


@pytest.mark.parametrize("missing", ["group_id", "name", "schedule_type", "handler"])
async def test_what_a_job_must_have(admin: AdminHarness, missing: str) -> None:
    body = {"group_id": await make_group(admin), "name": "n", "handler": "h", "schedule_type": "NONE"}
    del body[missing]
    refused = error(await admin.client.post("/api/v1/jobs", json=body), 422)
    assert (refused["field"], "is required" in refused["message"]) == (missing, True)


@pytest.mark.parametrize("half", [b'"\\ud800"', b'"a\\udfffb"'])
async def test_half_a_character_is_refused(admin: AdminHarness, half: bytes) -> None:
    for path, field in (("/api/v1/groups", b"app_name"), ("/api/v1/session", b"username")):
        body = b'{"title": "t", "password": "p", "%s": %s}' % (field, half)
        reply = await admin.client.post(path, content=body, headers=JSON)
        assert reply.status_code in (401, 422), reply.text
    job = await make_job(admin)
    reply = await admin.client.post(f"/api/v1/jobs/{job['id']}/run", content=b'{"parameter": %s}' % half, headers=JSON)
    assert error(reply, 422)["field"] == "parameter"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 422, "invalid"),
        (b"{", 400, "malformed_json"),
        (b"nonsense", 400, "malformed_json"),
        (b"\xff\xfe{}", 400, "malformed_json"),
        (b'{"name": "\xff"}', 400, "malformed_json"),
        (b"[]", 422, "invalid"),
        (b'"text"', 422, "invalid"),
        (b"null", 422, "invalid"),
        (b"{}", 422, "invalid"),
        (b'{"group_id": NaN}', 422, "invalid"),
        (b'{"group_id": ' + b"9" * 5_000 + b"}", 400, "malformed_json"),
        (b'{"tags": ' + b"[" * 40 + b"]" * 40 + b"}", 400, "malformed_json"),
        (b"[" * 200_000, 400, "malformed_json"),
        (b'{"name": "' + b"[" * 50 + b'"}', 422, "invalid"),
        (b'{"name": "' + b"x" * (1024 * 1024) + b'"}', 413, "too_large"),
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_a_body_that_is_no_job(admin: AdminHarness, body: bytes, status: int, code: str) -> None:
    reply = await admin.client.post("/api/v1/jobs", content=body, headers=JSON)
    assert error(reply, status)["code"] == code


@pytest.mark.timeout(5)
async def test_a_body_made_to_be_slow_to_read(admin: AdminHarness) -> None:
    for body in (b"[" * 40 + b'"' + b'\\"' * 500_000, b'"' * 1_000_000 + b"[" * 40, b"[" * 40 + b'"' + b"\\" * 999_999):
        reply = await admin.guest.post("/api/v1/session", content=body, headers=JSON)
        assert reply.status_code == 400


async def test_a_body_that_grows_too_large_without_saying_so(admin: AdminHarness) -> None:
    async def chunks() -> Any:
        for _ in range(20):
            yield b"x" * 100_000

    reply = await admin.client.post("/api/v1/jobs", content=chunks(), headers=JSON)
    assert error(reply, 413)["code"] == "too_large"


@pytest.mark.parametrize("kind", ["text/plain", "", "multipart/form-data", "application/xml"])
async def test_a_body_of_another_kind(admin: AdminHarness, kind: str) -> None:
    reply = await admin.client.post("/api/v1/jobs", content=b'{"name": "n"}', headers={"Content-Type": kind})
    assert error(reply, 415)["code"] == "not_json"


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/api/v1/jobs/abc", "job_id"),
        ("/api/v1/jobs/0", "job_id"),
        ("/api/v1/jobs/-1", "job_id"),
        ("/api/v1/jobs/99999999999999999999", "job_id"),
        ("/api/v1/runs/1.5", "run_id"),
        ("/api/v1/groups/x", "group_id"),
        ("/api/v1/jobs?limit=0", "limit"),
        ("/api/v1/jobs?limit=501", "limit"),
        ("/api/v1/jobs?after=x", "after"),
        ("/api/v1/jobs?after=-1", "after"),
        ("/api/v1/jobs?status=paused", "status"),
        ("/api/v1/jobs?group=1", "group"),
        ("/api/v1/runs?phase=done", "phase"),
        ("/api/v1/runs?outcome=ok", "outcome"),
        ("/api/v1/runs?trigger_type=cron", "trigger_type"),
        ("/api/v1/runs?planned_from=today", "planned_from"),
        ("/api/v1/runs?planned_until=2026-13-01T00:00:00Z", "planned_until"),
        ("/api/v1/runs?after=99999999999999999999", "after"),
        ("/api/v1/runs/1/log?from_line=0", "from_line"),
    ],
)
async def test_a_wrong_path_or_query(admin: AdminHarness, path: str, field: str) -> None:
    refused = error(await admin.client.get(path), 422)
    assert (refused["field"], field in refused["message"]) == (field, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", "/api/v1/nothing", 404),
        ("GET", "/api/v1/jobs/", 404),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("GET", "/openapi.json", 404),
        ("PUT", "/api/v1/jobs", 405),
        ("POST", "/health", 405),
        ("OPTIONS", "/api/v1/jobs", 405),
        ("TRACE", "/", 405),
        ("HEAD", "/api/v1/jobs", 405),
    ],
)
async def test_what_does_not_exist(admin: AdminHarness, method: str, path: str, status: int) -> None:
    reply = await admin.client.request(method, path)
    assert reply.status_code == status
    assert ("Allow" in reply.headers) == (status == 405)
    if method != "HEAD":
        error(reply, status)
