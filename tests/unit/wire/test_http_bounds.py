"""What the server of both sides takes from people who have shown no token: so much, for so long."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.http_protocol import MOST_HEAD_BYTES
from jobwheel.wire.http_server import HttpOptions, HttpServer
from jobwheel.wire.server import Receive, Scope, Send

FIRST = b"POST / HTTP/1.1\r\nHost: here\r\n"
IN_CHUNKS = FIRST + b"Transfer-Encoding: chunked\r\n\r\n"
WITHIN_S = 8.0
SENT_BYTES = 1024 * 1024
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def tell_size(_scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the length of the body; with nothing if that ends early."""
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@contextlib.asynccontextmanager
async def connected(request_s: float = 60.0) -> AsyncIterator[Connection]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = HttpServer("test", tell_size, listener, SystemClock(), HttpOptions(grace_s=0, request_s=request_s))
    await server.start()
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield reader, writer
    finally:
        await server.stop()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether the server closes the connection without a word."""
    try:
        return await asyncio.wait_for(reader.read(100), WITHIN_S) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


async def answer(reader: asyncio.StreamReader) -> int:
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), WITHIN_S)
    assert head.startswith(b"HTTP/1.1 200 "), head
    return int(await reader.read(100))


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /", b"x" * 1000),
        (FIRST + b"X: ", b"x" * 1000),
        (FIRST, b"X: y\r\n" * 100),
        (IN_CHUNKS + b"1;", b"x" * 1000),
        (IN_CHUNKS + b"2\r\n{}\r\n0\r\nX: ", b"x" * 1000),
        (IN_CHUNKS + b"2\r\n{}\r\n0\r\n", b"X: y\r\n" * 100),
    ],
    ids=["path", "header", "headers", "words of a chunk", "trailer", "trailers"],
)
async def test_what_is_no_body_is_bounded(begin: bytes, piece: bytes) -> None:
    async with connected() as (reader, writer):
        writer.write(begin)
        with contextlib.suppress(ConnectionError):
            # Several reads of the socket: within one, what stands before a head's or chunk's end is not told apart.
            for _ in range(SENT_BYTES // len(piece)):
                writer.write(piece)
                await writer.drain()
        assert await is_closed(reader)


async def test_a_body_is_not_a_head() -> None:
    async with connected() as (reader, writer):
        writer.write(FIRST + b"Content-Length: 1000000\r\n\r\n")
        writer.write(b"x" * 1_000_000)
        assert await answer(reader) == 1_000_000
        # Nor are many small chunks, each with its length in front.
        writer.write(IN_CHUNKS + b"1\r\nx\r\n" * 100_000 + b"0\r\n\r\n")
        assert await answer(reader) == 100_000
        # Nor many requests, one after the other on one connection.
        for _ in range(3):
            writer.write(FIRST + b"X: " + b"y" * (MOST_HEAD_BYTES - 1000) + b"\r\nContent-Length: 2\r\n\r\n{}")
            assert await answer(reader) == 2


@pytest.mark.parametrize(
    "begin",
    [
        b"",
        b"P",
        FIRST,
        FIRST + b"Content-Length: 5\r\n\r\n",
        FIRST + b"Content-Length: 5\r\n\r\n{",
        IN_CHUNKS + b"2\r\n{",
    ],
    ids=["nothing", "a letter", "a part of the head", "no body", "a part of the body", "a part of a chunk"],
)
@pytest.mark.parametrize("is_first", [True, False])
async def test_a_request_that_does_not_come_is_not_waited_for(begin: bytes, *, is_first: bool) -> None:
    async with connected(request_s=0.2) as (reader, writer):
        if not is_first:
            writer.write(FIRST + b"Content-Length: 2\r\n\r\n{}")
            assert await answer(reader) == 2
            # A connection that is kept has a time of its own.
            begin = begin or b"P"
        writer.write(begin)
        assert await is_closed(reader)


async def test_bytes_now_and_then_give_no_more_time() -> None:
    async with connected(request_s=0.3) as (reader, writer):
        closed = asyncio.ensure_future(is_closed(reader))
        writer.write(FIRST)
        with contextlib.suppress(ConnectionError):
            while not closed.done():
                writer.write(b"X: y\r\n")
                await writer.drain()
                await asyncio.wait({closed}, timeout=0.02)
        assert await closed


async def test_an_answer_may_take_longer_than_a_request() -> None:
    async with connected(request_s=0.2) as (reader, writer):
        writer.write(FIRST + b"Content-Length: 2\r\n\r\n{}")
        assert await answer(reader) == 2
        assert not reader.at_eof()
        writer.write(FIRST + b"Content-Length: 3\r\n\r\n{ }")
        assert await answer(reader) == 3
