"""An HTTP server in the running event loop, for the admin and inside executors."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.server import Receive, Scope, Send

log = get_logger(__name__)

_BACKLOG: Final = 2048
_UVICORN_LOGGER: Final = logging.getLogger("uvicorn.error")

AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How connections are kept and closed, and the certificate of an https server.

    Attributes:
        keep_alive_s: how long an unused connection is kept; longer than any peer keeps its end, since who closes first
            must not be the one that is written to.
        grace_s: how long requests under way may take when the server stops.
        request_s: how long a request may take to come, and a new connection until its first one. 10 MiB within it are
            less than 2 Mbit/s.
        trusted_proxies: whose word it is taken where a request comes from, and whether by https (`X-Forwarded-For`,
            `X-Forwarded-Proto`): addresses and networks. Anybody else could name any address.
    """

    keep_alive_s: int = 120
    grace_s: int = 3
    request_s: float = 60.0
    trusted_proxies: tuple[str, ...] = ()
    certificate: Path | None = None
    key: Path | None = None


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 = any free one. An IPv6 wildcard listens on IPv4 as well.

    Raises:
        OSError: the port is taken, or the host is not one of this machine.
    """
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


class _NoSmallTalk(logging.Filter):
    """Drops what uvicorn tells at INFO in the thread that makes this.

    It tells of its start and its end. An application that uvicorn serves as well would seem to start and end twice.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.WARNING or record.thread != self._thread


class HttpServer(Service):
    """uvicorn without its signal handlers and its logging set-up. Owns the socket; serves once."""

    def __init__(
        self, name: str, app: AsgiApp, listener: socket.socket, clock: Clock, options: HttpOptions | None = None
    ) -> None:
        super().__init__(name, clock)
        self._app = app
        self._listener = listener
        self._options = options or HttpOptions()
        self._server: Any = None
        self._serving: asyncio.Task[None] | None = None
        self._filter: _NoSmallTalk | None = None

    async def on_start(self) -> None:
        self._filter = _NoSmallTalk()
        _UVICORN_LOGGER.addFilter(self._filter)
        ready = asyncio.Event()
        self._server = _make_server(self._app, self._options, ready)
        self._serving = asyncio.create_task(self._server.serve(sockets=[self._listener]), name=self.name)
        began = asyncio.create_task(ready.wait())
        await asyncio.wait({self._serving, began}, return_when=asyncio.FIRST_COMPLETED)
        began.cancel()
        if self._serving.done():
            self._serving.result()
        self._serving.add_done_callback(self._ended)

    def _ended(self, serving: "asyncio.Task[None]") -> None:
        if not self._server.should_exit and not serving.cancelled():
            log.error("http_server.ended", server=self.name, exc_info=serving.exception())

    async def on_stop(self) -> None:
        if self._serving is not None:
            self._server.should_exit = True
            await asyncio.gather(self._serving, return_exceptions=True)
            await self._close_rest()
        if self._filter is not None:
            _UVICORN_LOGGER.removeFilter(self._filter)
        self._listener.close()

    async def _close_rest(self) -> None:
        """Close what uvicorn leaves open: who did not let go in time, or was accepted just before the end.

        A program that goes on would hold these connections for its life.
        """
        for connection in list(self._server.server_state.connections):
            connection.transport.abort()
        await self.clock.wait(0)


def _make_server(app: AsgiApp, options: HttpOptions, ready: asyncio.Event) -> object:
    # Imported late: it is a third of the time that an import of the SDK would take.
    import uvicorn  # noqa: PLC0415 - see above

    from jobwheel.wire.http_protocol import BoundedProtocol  # noqa: PLC0415 - see above

    class Protocol(BoundedProtocol):
        request_s = options.request_s

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # Signals are the program's business, which stops more than its server.
            yield

    config = uvicorn.Config(
        cast("Any", app),
        http=Protocol,
        loop="none",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        backlog=_BACKLOG,
        # Told, since uvicorn would take them from a variable that is meant for other servers, or believe this machine.
        proxy_headers=bool(options.trusted_proxies),
        forwarded_allow_ips=list(options.trusted_proxies),
        timeout_keep_alive=options.keep_alive_s,
        timeout_graceful_shutdown=options.grace_s,
        ssl_certfile=options.certificate,
        ssl_keyfile=options.key,
    )
    return Server(config)
