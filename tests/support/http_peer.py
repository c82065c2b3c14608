"""A peer that answers with raw bytes by a script: what well-behaved and ill-behaved servers do to a client."""

import asyncio
import contextlib
import os
import random
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from tests.support.accepting import all_accepted, all_closed

Behaviour = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class PeerRequest:
    """What the peer read. Header names are in lower case; `connection` counts connections from 1."""

    connection: int
    request_line: str
    headers: dict[str, str]
    body: bytes


@dataclass(slots=True)
class HttpPeer:
    """A server on 127.0.0.1. Each request is answered by the next behaviour of the script.

    At the script's end by `otherwise`, which is a proper reply if left out.
    A connection is closed when a behaviour closes its writer; else the next request is read from it.
    """

    script: list[Behaviour] = field(default_factory=list)
    tls: ssl.SSLContext | None = None
    host: str = "127.0.0.1"
    reads_bodies: bool = True
    otherwise: Behaviour | None = None
    wanted_port: int = 0
    requests: list[PeerRequest] = field(default_factory=list)
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    got_request: asyncio.Event = field(default_factory=asyncio.Event)
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self.host, self.wanted_port, ssl=self.tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await all_accepted()
        for task in list(self._tasks):
            task.cancel()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await all_closed(self._server)

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def root(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls else 'http'}://{host}:{self.port}/"

    @property
    def url(self) -> str:
        return f"{self.root}run"

    async def wait_requests(self, count: int) -> None:
        """Return once the peer has read `count` requests."""
        async with asyncio.timeout(5):
            while len(self.requests) < count:
                self.got_request.clear()
                await self.got_request.wait()

    def hang_up_now(self, connection: int = 1) -> None:
        """Close a connection (counted from 1) in the kernel, before any event loop comes round to tell."""
        with self._own_socket(connection) as peer_socket:
            peer_socket.shutdown(socket.SHUT_RDWR)

    def say_now(self, data: bytes, connection: int = 1) -> None:
        """Send bytes that nobody asked for, before any event loop comes round to read them."""
        with self._own_socket(connection) as peer_socket:
            peer_socket.send(data)

    def _own_socket(self, connection: int) -> socket.socket:
        return socket.socket(fileno=os.dup(self.writers[connection - 1].get_extra_info("socket").fileno()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.writers.append(writer)
        number = len(self.writers)
        try:
            while not writer.is_closing():
                self.requests.append(await _read_request(reader, number, with_body=self.reads_bodies))
                self.got_request.set()
                behaviour = self.script.pop(0) if self.script else self.otherwise or reply()
                await behaviour(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)


async def _read_request(reader: asyncio.StreamReader, number: int, *, with_body: bool) -> PeerRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    request_line, *lines = head.removesuffix("\r\n\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0"))) if with_body else b""
    return PeerRequest(number, request_line, headers, body)


def raw(*parts: bytes, close: bool = False) -> Behaviour:
    """Write the parts one by one, then perhaps close."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop between the parts
        if close:
            writer.close()

    return behave


def reply(body: bytes = b'{"code":200}', status: int = 200, headers: str = "", *, close: bool = False) -> Behaviour:
    """A proper reply. `headers` are whole lines."""
    head = f"HTTP/1.1 {status} Some Words\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return raw(head.encode("latin-1") + body, close=close)


def chunked(*chunks: bytes) -> Behaviour:
    """A proper reply in chunks, each written apart."""
    parts = [b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
    return raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *parts, b"0\r\n\r\n")


def after(event: asyncio.Event, then: Behaviour) -> Behaviour:
    """Wait for the event, then behave."""

    async def behave(writer: asyncio.StreamWriter) -> None:
        await event.wait()
        await then(writer)

    return behave


async def never(writer: asyncio.StreamWriter) -> None:
    """Read the request and say nothing, until the client goes."""
    await writer.wait_closed()


async def reset(writer: asyncio.StreamWriter) -> None:
    """Break the connection off with a TCP reset."""
    peer_socket: socket.socket = writer.get_extra_info("socket")
    peer_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def unused_port() -> int:
    """A port of 127.0.0.1 where nobody listens, nor will by chance.

    It is below those that the system hands out, at a random place: one of its own would be given away again, to any
    connection that is made before whoever is to listen there does.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
