"""The server side of the protocol: a raw ASGI application in front of handlers that take bytes and give bytes."""

import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import Any

from jobwheel.kernel.logging import get_logger
from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.errors import MalformedMessageError
from jobwheel.wire.messages import CONTENT_TYPE, FAILURE, MAX_BODY_BYTES

log = get_logger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_SLASHES = re.compile(r"//+")


@dataclass(frozen=True, slots=True)
class WireRequest:
    """One request. Header names are in lower case."""

    path: str
    body: bytes
    headers: Mapping[str, str]
    client: str

    def header(self, name: str) -> str | None:
        return self.headers.get(name.lower())


Handler = Callable[[WireRequest], Awaitable[bytes]]
Refuse = Callable[[WireRequest], bytes | None]
"""What a request is answered with before its body is read; None: nothing is against it."""


class WireApp:
    """An ASGI application for the paths in `routes`; each handler answers with an encoded envelope.

    `refuse` is asked first, for what comes on one of the paths: who may not ask keeps nothing in memory. The request
    that it sees has no body yet.

    Whatever goes wrong is answered with HTTP 200 and an envelope that says what: an unknown path, a method other than
    POST, a body over `MAX_BODY_BYTES`, a malformed message, an unexpected error.
    """

    def __init__(self, routes: Mapping[str, Handler], refuse: Refuse | None = None) -> None:
        self._routes = dict(routes)
        self._refuse = refuse

    def handles(self, path: str) -> bool:
        """Whether the path, slashes normalised, is one of the routes."""
        return normalise_path(path) in self._routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = normalise_path(scope["path"])
        handler = self._routes.get(path)
        if scope["method"] != "POST":
            await _reply(send, encode_envelope(FAILURE, "invalid request, HttpMethod not support."))
        elif handler is None:
            await _reply(send, encode_envelope(FAILURE, f"invalid request, uri-mapping({path}) not found."))
        else:
            await _reply(send, await self._handle(handler, scope, receive, path))

    async def _handle(self, handler: Handler, scope: Scope, receive: Receive, path: str) -> bytes:
        client = scope.get("client") or ("unknown", 0)
        try:
            # Before the body: trailers would be among the headers behind it.
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            request = WireRequest(path=path, body=b"", headers=headers, client=str(client[0]))
            refusal = None if self._refuse is None else self._refuse(request)
            return await handler(replace(request, body=await _read_body(receive))) if refusal is None else refusal
        except MalformedMessageError as error:
            log.warning("wire.malformed_request", path=path, client=client[0], error=error.message)
            return encode_envelope(FAILURE, error.message)
        except Exception as error:
            log.exception("wire.request_failed", path=path, client=client[0])
            return encode_envelope(FAILURE, f"{path} failed here: {type(error).__name__}; the log has the details")


def normalise_path(path: str) -> str:
    """One slash where there are several, none at the end."""
    return _SLASHES.sub("/", path).rstrip("/") or "/"


async def _read_body(receive: Receive) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise MalformedMessageError("the body ended early: the client went away")
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > MAX_BODY_BYTES:
            raise MalformedMessageError(f"the body is larger than {MAX_BODY_BYTES} bytes")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def _reply(send: Send, body: bytes) -> None:
    headers = [(b"content-type", CONTENT_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
