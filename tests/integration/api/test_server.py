"""The app behind a real server on a real port."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
import pytest
import uvicorn

from tests.support.admin_harness import AdminHarness, sign_in
from tests.support.admin_jobs import answer, error


@pytest.fixture
async def url(admin: AdminHarness) -> AsyncIterator[str]:
    config = uvicorn.Config(admin.app, host="127.0.0.1", port=0, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    serving = asyncio.create_task(server.main_loop())
    try:
        host, port = server.servers[0].sockets[0].getsockname()
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving
        await server.shutdown()


async def test_rest_over_a_socket(admin: AdminHarness, url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as client:
        assert answer(await client.get("/health")) == {"status": "green", "reasons": []}
        head = await client.head("/health")
        assert (head.status_code, head.content) == (200, b"")
        await sign_in(client, admin.password)
        reply = await client.post("/api/v1/groups", json={"app_name": "orders", "title": "O"}, headers={"Origin": url})
        assert answer(reply, 201)["id"] == 1
        refused = await client.post("/api/v1/groups", json={}, headers={"Origin": "http://127.0.0.1:1"})
        assert error(refused, 403)["code"] == "foreign_origin"
        assert (await client.delete("/api/v1/groups/1")).status_code == 204


async def test_a_body_that_is_too_large_is_refused_unread(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"POST /api/v1/session HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n{")
    assert b"413" in await reader.readline()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
