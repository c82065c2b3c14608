"""The server of both sides: what it leaves behind when it stops."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.http_server import AsgiApp, HttpOptions, HttpServer


@contextlib.asynccontextmanager
async def _connected(app: AsgiApp) -> AsyncIterator[tuple[HttpServer, asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer("test", app, listener, SystemClock(), HttpOptions(grace_s=0))
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
