"""uvicorn's connection with bounds: how much of a request that is no body is kept, and how long one may take to come.

It is imported when a server is made, since uvicorn is a third of the time that an import of the SDK would take.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

MOST_HEAD_BYTES: Final = 64 * 1024
"""Of a request's first line and headers, or of the trailers of a body in chunks."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection that nobody can use up a server's memory with, nor keep for nothing.

    Attributes:
        request_s: how long a request may take to come, from its first byte to its last, and a new connection until its
            first one. While the server itself does not read, it waits.
    """

    request_s: float = 60.0

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # What came since the last piece of a body began or ended, and is none of a body.
        self._head_bytes = 0
        self._is_coming = False
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self.transport.is_closing():
            return
        if self._head_bytes > MOST_HEAD_BYTES:
            self._refuse("too_large")
        elif self._is_coming and self._deadline is None:
            self._set_deadline()

    def on_message_begin(self) -> None:
        self._is_coming = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes -= len(body)
        super().on_body(body)

    def on_chunk_complete(self) -> None:
        """Called by the parser. A body of many small chunks has as many lines that tell their lengths."""
        self._head_bytes = 0

    def on_message_complete(self) -> None:
        self._head_bytes = 0
        self._is_coming = False
        self._clear_deadline()
        super().on_message_complete()

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(self.request_s, self._on_deadline)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _on_deadline(self) -> None:
        self._deadline = None
        if self.flow.read_paused:
            self._set_deadline()
        elif not self.transport.is_closing():
            self._refuse("too_slow")

    def _refuse(self, reason: str) -> None:
        # Without a reply: half of a request is none, and its app may be about to answer it.
        client = self.client[0] if self.client else "unknown"
        log.warning("http_server.request_refused", reason=reason, client=client)
        self.transport.abort()
