"""The ASGI application of an executor, and the port that it is served on."""

import errno
import os
import socket
from typing import Final

from jobwheel.executor.errors import BindError
from jobwheel.executor.forked import close_in_children
from jobwheel.executor.settings import is_loopback
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.http_server import listen
from jobwheel.wire.messages import FAILURE, Reason
from jobwheel.wire.server import Receive, Scope, Send, WireApp, WireRequest

log = get_logger(__name__)

FIRST_PORT: Final = 9999
_MOST_PORTS: Final = 1000


class ExecutorApp:
    """A raw ASGI application. It may be mounted in another application, under any path.

    It answers `stopping` while the executor is not started.
    """

    def __init__(self, paths: tuple[str, ...]) -> None:
        self._stopped = WireApp(dict.fromkeys(paths, _answer_nobody), _refuse)
        self._foreign = WireApp(dict.fromkeys(paths, _answer_nobody), _refuse_foreign)
        self._current = self._stopped
        self._local_only = False

    def serve(self, app: WireApp | None, *, local_only: bool = False) -> None:
        """Hand requests to `app`; None: the executor is stopped.

        Args:
            app: what answers.
            local_only: refuse what does not come from this machine. An executor without a token needs it: where the
                application that it is mounted in listens is not known here.
        """
        self._current = app or self._stopped
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            root = scope.get("root_path", "")
            path = scope["path"]
            if root and path.startswith(root):
                scope = {**scope, "path": path[len(root) :] or "/"}
            app = self._foreign if self._local_only and not _is_local(scope) else self._current
            await app(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _lifespan(receive, send)
        else:
            await send({"type": "websocket.close"})


async def _lifespan(receive: Receive, send: Send) -> None:
    for phase in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{phase}.complete"})


async def _answer_nobody(_: WireRequest) -> bytes:
    raise AssertionError("everybody is refused")


def _refuse(_: WireRequest) -> bytes:
    return encode_envelope(FAILURE, "this executor is not started, or is stopped", reason=Reason.STOPPING)


def _refuse_foreign(request: WireRequest) -> bytes:
    log.warning("executor.foreign_request", path=request.path, client=request.client, advice="set access_token")
    return encode_envelope(FAILURE, "without an access_token this executor serves its own machine alone")


def _is_local(scope: Scope) -> bool:
    client = scope.get("client")
    # A socket for both versions of IP gives addresses of version 4 in this form.
    return client is not None and is_loopback(str(client[0]).removeprefix("::ffff:"))


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens on `host`; for a `port` of 0 or less on the next free one from 9999 up.

    Children that are forked have it not: it would listen as long as one of them lives, and nobody would answer.

    Raises:
        BindError: the port is taken, or the host is not one of this machine.
    """
    ports = range(FIRST_PORT, FIRST_PORT + _MOST_PORTS) if port <= 0 else range(port, port + 1)
    tried = str(port) if port > 0 else f"{ports[0]} to {ports[-1]}"
    reason, field = "no port is free", "port"
    for candidate in ports:
        try:
            listener = listen(host, candidate)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno != errno.EADDRINUSE:
                # The next port would not help: it is the host, or a port that only the system may use.
                field = "port" if error.errno == errno.EACCES else "host"
                break
        else:
            close_in_children(listener, _close)
            return listener
    raise BindError(host, tried, reason, field=field)


def _close(listener: socket.socket) -> None:
    # Not by its own `close`, which waits for the event loop that has it, and that does not run here.
    if listener.fileno() >= 0:
        os.close(listener.detach())
