"""The HTTP server inside the executor, and the ASGI application that it serves."""

import asyncio
import errno
import socket
from typing import Any, Final, cast

from jobwheel.executor.errors import BindError
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.codec import encode_envelope
from jobwheel.wire.messages import FAILURE, Reason
from jobwheel.wire.server import Receive, Scope, Send, WireApp, WireRequest

log = get_logger(__name__)

FIRST_PORT: Final = 9999
_MOST_PORTS: Final = 1000
_BACKLOG: Final = 2048
# Longer than any admin keeps an unused connection: who closes first must not be the one that is written to.
_KEEP_ALIVE_S: Final = 120
_GRACE_S: Final = 3


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
            return _listen(host, candidate)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno != errno.EADDRINUSE:
                # The next port would not help: it is the host, or a port that only the system may use.
                field = "port" if error.errno == errno.EACCES else "host"
                break
    raise BindError(host, tried, reason, field=field)


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6 and host == "::":
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind(address)
        # At once: two processes that look for a free port could otherwise both bind the same one.
        listener.listen(_BACKLOG)
        listener.settimeout(0)
    except OSError:
        listener.close()
        raise
    return listener


class EmbeddedServer(Service):
    """uvicorn in the running loop, without its signal handlers and its logging set-up. Owns the socket."""

    def __init__(self, app: ExecutorApp, listener: socket.socket, clock: Clock) -> None:
        super().__init__("executor.server", clock)
        self._app = app
        self._listener = listener
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None

    async def on_start(self) -> None:
        ready = asyncio.Event()
        self._server = _make_server(self._app, ready)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]), name="executor.server")
        began = asyncio.create_task(ready.wait())
        await asyncio.wait({self._serving, began}, return_when=asyncio.FIRST_COMPLETED)
        began.cancel()
        if self._serving.done():
            self._serving.result()
        self._serving.add_done_callback(self._ended)

    def _ended(self, serving: "asyncio.Task[None]") -> None:
        if not self._server.should_exit and not serving.cancelled():
            log.error("executor.server_ended", exc_info=serving.exception())

    async def on_stop(self) -> None:
        if self._serving is not None:
            self._server.should_exit = True
            await asyncio.gather(self._serving, return_exceptions=True)
        self._listener.close()


def _make_server(app: ExecutorApp, ready: asyncio.Event) -> object:
    # Imported late: it is a third of the time that an import of the SDK would take.
    import uvicorn  # noqa: PLC0415 - see above

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    config = uvicorn.Config(
        cast("Any", app),
        http="httptools",
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_GRACE_S,
    )
    return Server(config)
