"""The WSGI application of an executor."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from jobwheel.executor.server import ExecutorApp
from jobwheel.wire.server import Receive

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_CHUNK: Final = 65_536
_LENGTH: Final = re.compile(r"[0-9]{1,18}")


class ExecutorWsgiApp:
    """The same answers as those of the ASGI application, given in the thread that asks for them.

    It may be mounted in another application, under any path, and be called by many threads at once. Each request has an
    event loop of its own, so that it waits for no other thread and leaves the caller's event loop as it was.
    """

    def __init__(self, app: ExecutorApp) -> None:
        self._app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            head, body = runner.run(self._answer(environ))
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in head["headers"]]
        # The protocol's answers are all of this status.
        start_response("200 OK", headers)
        return [body["body"]]

    async def _answer(self, environ: "WSGIEnvironment") -> tuple[Any, Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        await self._app(_scope(environ), _body(environ), send)
        return sent[0], sent[1]


def _scope(environ: "WSGIEnvironment") -> dict[str, Any]:
    return {
        "type": "http",
        "method": environ["REQUEST_METHOD"],
        # Servers put the bytes of a path into a text, one by one.
        "path": environ.get("PATH_INFO", "").encode("latin-1", "replace").decode("utf-8", "replace"),
        "headers": list(_headers(environ)),
        "client": (environ.get("REMOTE_ADDR", ""), 0),
    }


def _headers(environ: "WSGIEnvironment") -> Iterator[tuple[bytes, bytes]]:
    for name, value in environ.items():
        if name.startswith("HTTP_"):
            yield name[5:].replace("_", "-").lower().encode("latin-1", "replace"), value.encode("latin-1", "replace")


def _body(environ: "WSGIEnvironment") -> Receive:
    """Gives the body piece by piece, so that one which is too long is not read to its end."""
    stream = environ["wsgi.input"]
    length = environ.get("CONTENT_LENGTH") or ""
    # Without a length only some servers say where a body ends; with the others, reading would wait for ever.
    left = int(length) if _LENGTH.fullmatch(length) else None
    if left is None and not environ.get("wsgi.input_terminated"):
        left = 0

    async def receive() -> dict[str, Any]:
        nonlocal left
        try:
            chunk = stream.read(_CHUNK if left is None else min(_CHUNK, left))
        except OSError:
            return {"type": "http.disconnect"}
        if left is None:
            return {"type": "http.request", "body": chunk, "more_body": bool(chunk)}
        left -= len(chunk)
        if left and not chunk:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": left > 0}

    return receive
