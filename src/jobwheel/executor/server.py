"""The ASGI application of an executor, and the port that it is served on."""

import errno
import socket
from typing import Final

from jobwheel.executor.errors import BindError
from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.http_server import listen
from jobwheel.wire.messages import FAILURE, Reason
from jobwheel.wire.server import Receive, Scope, Send, WireApp, WireRequest

FIRST_PORT: Final = 9999
_MOST_PORTS: Final = 1000


class ExecutorApp:
    """A raw ASGI application. It may be mounted in another application, under any path.

    It answers `stopping` while the executor is not started.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._stopped = WireApp(dict.fromkeys(paths, _refuse))
        self._current = self._stopped

    def serve(self, app: WireApp | None) -> None:
        """Hand requests to `app`; None: the executor is stopped."""
        self._current = app or self._stopped

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            root = scope.get("root_path", "")
            path = scope["path"]
            if root and path.startswith(root):
                scope = {**scope, "path": path[len(root) :] or "/"}
            await self._current(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})


async def _lifespan(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


async def _refuse(_: WireRequest) -> bytes:
    return encode_envelope(FAILURE, "this executor is not started, or is stopped", reason=Reason.STOPPING)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on `host`; for a `port` of 0 or less on the next free one from 9999 up.

    Raises:
        BindError: the port is taken, or the host is not one of this machine.
    """
    ports = range(FIRST_PORT, FIRST_PORT + _MOST_PORTS) if port <= 0 else range(port, port + 1)
    tried = str(port) if port > 0 else f"{ports[0]} to {ports[-1]}"
    reason, field = "no port is free", "port"
    for candidate in ports:
        try:
            return listen(host, candidate)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno != errno.EADDRINUSE:
                # The next port would not help: it is the host, or a port that only the system may use.
                field = "port" if error.errno == errno.EACCES else "host"
                break
    raise BindError(host, tried, reason, field=field)
