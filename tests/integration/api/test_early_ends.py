"""A client that goes away amid its body: nothing is done of what it asked for."""

from typing import Any

import pytest

from tests.support.admin_harness import AdminHarness
from tests.support.admin_jobs import answer, make_job


async def send_in_part(admin: AdminHarness, path: str, *pieces: bytes) -> list[Any]:
    """Send the head and the pieces of a body that has more, and go away; what was answered."""
    cookie = f"jobwheel_session={admin.client.cookies['jobwheel_session']}"
    headers = {"host": "jobwheel.test", "cookie": cookie, "content-type": "application/json", "content-length": "40"}
    left = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return left.pop(0) if left else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("10.0.0.9", 4711),
        "server": ("jobwheel.test", 80),
    }
    await admin.app(scope, receive, send)
    return sent


@pytest.mark.parametrize(
    "pieces",
    [
        # Without a body the job runs with its own parameter.
        [],
        [b""],
        # Whole as JSON, and not all that was announced.
        [b'{"parameter": "day=1"}'],
        [b'{"parameter": ', b'"day=1"}  '],
        [b'{"parameter": "da'],
    ],
)
async def test_no_run_is_made(admin: AdminHarness, pieces: list[bytes], caplog: pytest.LogCaptureFixture) -> None:
    job = await make_job(admin)
    assert await send_in_part(admin, f"/api/v1/jobs/{job['id']}/run", *pieces) == []
    assert answer(await admin.client.get("/api/v1/runs"))["items"] == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        f"api.body_ended_early method=POST path=/api/v1/jobs/{job['id']}/run"
    ]


async def test_no_token_is_rotated(admin: AdminHarness) -> None:
    job = await make_job(admin)
    path = f"/api/v1/groups/{job['group_id']}/tokens"
    answer(await admin.client.post(path), 201)
    before = answer(await admin.client.get(path))
    assert await send_in_part(admin, f"{path}/rotate") == []
    assert answer(await admin.client.get(path)) == before
