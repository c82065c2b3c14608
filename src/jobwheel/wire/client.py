"""The keep-alive HTTP/1.1 client that admin and executor speak to each other with.

It knows exactly one thing better than a general client does: whether a byte of the request left. That no run is
executed twice rests on it, so a request is never written a second time once its first byte was written.
"""

import asyncio
import ssl
from collections.abc import Mapping

from jobwheel.kernel.clock import Clock
from jobwheel.kernel.service import Service
from jobwheel.wire.client_connection import ClientConnection, WireReply
from jobwheel.wire.client_request import join_url, parse_target, request_bytes, request_head
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import MAX_BODY_BYTES
from jobwheel.wire.why import Cause, Why

__all__ = ["UncertainError", "UnreachableError", "WireClient", "WireReply", "join_url"]

_SWEEP_S = 0.05
_MOST_HEADS = 10_000

Origin = tuple[str, str, int]


class WireClient(Service):
    """Posts to peers over connections that are kept and used again.

    Used from the one event loop that started it. How many requests are under way at once is up to the callers.

    Args:
        clock: what deadlines and idle times are measured with.
        connect_timeout_s: the longest that name look-up, connecting and the TLS handshake may take together.
        idle_s: how long an unused connection is kept. Peers in Java close theirs after 90 s: stay below.
        ssl_context: for https; the system's certificate authorities if left out.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        connect_timeout_s: float = 3.0,
        idle_s: float = 60.0,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        super().__init__("wire.client", clock)
        self._connect_timeout_s = connect_timeout_s
        self._idle_s = idle_s
        self._ssl_context = ssl_context
        self._heads: dict[tuple[object, ...], tuple[Origin, bytes]] = {}
        self._idle: dict[Origin, list[ClientConnection]] = {}
        self._busy: set[ClientConnection] = set()
        self._open: set[ClientConnection] = set()
        self._none_open = asyncio.Event()
        self._used = asyncio.Event()
        self._accepting = False

    @property
    def open_connections(self) -> int:
        """How many connections there are, busy or idle."""
        return len(self._open)

    @property
    def busy_connections(self) -> int:
        """How many connections wait for a reply."""
        return len(self._busy)

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout_s: float,
        most_bytes: int = MAX_BODY_BYTES,
    ) -> WireReply:
        """Post `body` and return the reply, whatever its status; redirects are not followed.

        `timeout_s` runs from the moment the request is written; connecting has its own time-out before that. No more
        than `most_bytes` of a reply are read. A caller that is cancelled cannot know whether the peer acted.

        Raises:
            UnreachableError: no byte of the request was written: the peer cannot have seen it.
            UncertainError: at least the first byte was written, and no readable reply came within `timeout_s`, or
                one that is larger than `most_bytes`.
        """
        origin, head = self._head(url, headers)
        request = request_bytes(head, body)
        self._check_accepting(url)
        connection = self._take_idle(origin) or await self._connect(url, origin)
        connection.deadline = self.clock.monotonic() + timeout_s
        waiter = connection.send(url, request, most_bytes)
        self._busy.add(connection)
        self._used.set()
        try:
            reply = await waiter
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._busy.discard(connection)
        if connection.reusable:
            self._keep(origin, connection)
        return reply

    async def on_start(self) -> None:
        self._accepting = True
        self.supervise("sweep", self._sweep_loop)

    async def on_stop(self) -> None:
        self._accepting = False
        for connection in list(self._open):
            connection.fail(Why.STOPPED.because())
        self._idle.clear()
        if self._open:
            self._none_open.clear()
            await self.clock.wait(1.0, self._none_open)

    def _head(self, url: str, headers: Mapping[str, str]) -> tuple[Origin, bytes]:
        """Whom the request goes to, and its head, checked and put together once for all requests that share it."""
        key = (url, *headers.items())
        found = self._heads.get(key)
        if found is None:
            target = parse_target(url)
            if len(self._heads) >= _MOST_HEADS:
                self._heads.clear()
            found = self._heads[key] = (target.origin, request_head(url, target, headers))
        return found

    def _take_idle(self, origin: Origin) -> ClientConnection | None:
        """The connection used last that is still good; the others on the way are closed."""
        connections = self._idle.get(origin)
        oldest_s = self.clock.boot_time() - self._idle_s
        while connections:
            connection = connections.pop()
            if connection.idle_since > oldest_s and connection.is_quiet():
                return connection
            connection.close()
        return None

    def _keep(self, origin: Origin, connection: ClientConnection) -> None:
        # By the boot-time clock: a peer's time-out goes on while this machine sleeps.
        connection.idle_since = self.clock.boot_time()
        self._idle.setdefault(origin, []).append(connection)

    async def _connect(self, url: str, origin: Origin) -> ClientConnection:
        connection = ClientConnection(self._lost)
        try:
            await self._open_within_timeout(url, origin, connection)
            self._check_accepting(url)
        except BaseException:
            connection.close()
            raise
        self._open.add(connection)
        return connection

    async def _open_within_timeout(self, url: str, origin: Origin, connection: ClientConnection) -> None:
        scheme, host, port = origin
        try:
            async with asyncio.timeout(self._connect_timeout_s) as time_limit:
                await asyncio.get_running_loop().create_connection(
                    lambda: connection, host, port, ssl=self._tls() if scheme == "https" else None
                )
        except (OSError, UnicodeError) as error:
            # UnicodeError: a name that cannot be looked up, such as one with a part of more than 63 characters.
            reason: Cause | str = str(error) or type(error).__name__
            if time_limit.expired():
                reason = Why.NO_CONNECTION.because(f"{self._connect_timeout_s:g}")
            raise UnreachableError(url, reason) from error
        if not connection.open:
            raise UnreachableError(url, Why.CLOSED_AT_ONCE.because())

    def _check_accepting(self, url: str) -> None:
        if not self._accepting:
            raise UnreachableError(url, Why.NOT_RUNNING.because())

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = ssl.create_default_context()
        return self._ssl_context

    def _lost(self, connection: ClientConnection) -> None:
        self._open.discard(connection)
        if not self._open:
            self._none_open.set()

    async def _sweep_loop(self) -> None:
        while True:
            # Naps while nothing happens, then looks every 50 ms until a whole 50 ms went by without a request.
            await self.clock.wait(self._until_next_expiry_s(), self._used)
            while self._used.is_set() or self._busy:
                self._used.clear()
                await self.clock.wait(_SWEEP_S)
                self._fail_overdue()
                self._drop_idle()
            self._drop_idle()

    def _until_next_expiry_s(self) -> float:
        expiries = [connections[0].idle_since + self._idle_s for connections in self._idle.values() if connections]
        return max(_SWEEP_S, min(expiries) - self.clock.boot_time()) if expiries else self._idle_s

    def _fail_overdue(self) -> None:
        now = self.clock.monotonic()
        for connection in list(self._busy):
            if connection.deadline <= now:
                connection.fail(Why.NO_REPLY.because())

    def _drop_idle(self) -> None:
        oldest_s = self.clock.boot_time() - self._idle_s
        for origin, connections in list(self._idle.items()):
            # The oldest come first: usually a look at one is enough.
            while connections and not (connections[0].open and connections[0].idle_since > oldest_s):
                connections.pop(0).close()
            if not connections:
                del self._idle[origin]
