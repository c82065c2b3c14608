"""The server of both sides: what it leaves behind when it stops."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.http_server import AsgiApp, HttpOptions, HttpServer


@contextlib.asynccontextmanager
async def _connected(
    app: AsgiApp, options: HttpOptions | None = None
) -> AsyncIterator[tuple[HttpServer, asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer("test", app, listener, SystemClock(), options or HttpOptions(grace_s=0))
    await server.start()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield server, reader, writer
    finally:
        await server.stop()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_connection_whose_request_outlasts_the_stop_is_closed() -> None:
    asked, let_go = asyncio.Event(), asyncio.Event()

    async def hold(_scope: object, _receive: object, _send: object) -> None:
        asked.set()
        while not let_go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await let_go.wait()

    async with _connected(hold) as (server, reader, writer):
        writer.write(b"POST /run HTTP/1.1\r\nHost: here\r\nContent-Length: 0\r\n\r\n")
        try:
            await asyncio.wait_for(asked.wait(), 5)
            await server.stop()
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 5) == b""
        finally:
            let_go.set()


@pytest.mark.parametrize(
    ("trusted", "seen"),
    [
        ((), ("127.0.0.1", "http")),
        (("10.0.0.7",), ("127.0.0.1", "http")),
        # The last one that is no proxy of ours: what stands before it anybody may have written.
        (("127.0.0.1", "198.51.100.0/24"), ("203.0.113.5", "https")),
    ],
)
async def test_only_a_trusted_proxy_says_where_a_request_comes_from(
    monkeypatch: pytest.MonkeyPatch, trusted: tuple[str, ...], seen: tuple[str, str]
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    asked: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def note(scope: Any, _receive: Any, send: Any) -> None:
        asked.put_nowait((scope["client"][0], scope["scheme"]))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async with _connected(note, HttpOptions(grace_s=0, trusted_proxies=trusted)) as (_, _, writer):
        forwarded = b"X-Forwarded-For: 192.0.2.1, 203.0.113.5, 198.51.100.9\r\nX-Forwarded-Proto: https\r\n"
        writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n" + forwarded + b"\r\n")
        assert await asyncio.wait_for(asked.get(), 5) == seen
