"""One keep-alive connection of the client: a request at a time, its reply read by httptools."""

import asyncio
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import httptools

from jobwheel.wire.errors import UncertainError
from jobwheel.wire.messages import MAX_BODY_BYTES
from jobwheel.wire.why import Cause, Why

_MAX_HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class WireReply:
    """What the peer answered. `status` is HTTP's own; the outcome stands in the envelope, which is the `body`."""

    status: int
    body: bytes


class ClientConnection(asyncio.Protocol):
    """A connection that carries one request at a time.

    Its owner sends only on a connection that is `open` and not busy, gives up a request by `close` or `fail`, and
    sends again only if `reusable` holds after the reply. `deadline` belongs to the owner.
    """

    __slots__ = (
        "_body",
        "_body_bytes",
        "_budget",
        "_complete",
        "_ends_at_eof",
        "_most_bytes",
        "_on_lost",
        "_parser",
        "_poll",
        "_received",
        "_status",
        "_transport",
        "_url",
        "_waiter",
        "deadline",
        "idle_since",
        "open",
        "reusable",
    )

    def __init__(self, on_lost: Callable[["ClientConnection"], None]) -> None:
        self._on_lost = on_lost
        self._parser = httptools.HttpResponseParser(self)
        self._poll: select.poll | None = None
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[WireReply] | None = None
        self._url = ""
        self.deadline = 0.0
        self.idle_since = 0.0
        self.open = False
        self.reusable = False
        self._most_bytes = MAX_BODY_BYTES
        self._reset()

    def _reset(self) -> None:
        self._status = 0
        self._body: list[bytes] = []
        self._body_bytes = 0
        self._received = 0
        self._budget = _MAX_HEAD_BYTES
        self._complete = False
        self._ends_at_eof = True

    def send(self, url: str, request: bytes, most_bytes: int) -> asyncio.Future[WireReply]:
        """Write a request, the reply to which has `most_bytes` at most.

        From here on the peer may have acted on it: every failure is an `UncertainError`.
        """
        assert self._transport is not None
        self._reset()
        self._url = url
        self._most_bytes = most_bytes
        self.reusable = False
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiter

    def is_quiet(self) -> bool:
        """Whether an idle connection still looks usable, the kernel asked as well.

        The loop may not have come round yet to see that the peer closed. Anything to read on an idle connection is
        the end of the stream, an error, or bytes that nobody asked for.
        """
        return self.open and not (self._poll is not None and self._poll.poll(0))

    def fail(self, cause: Cause) -> None:
        """Give the request up, if there is one, and close."""
        self._settle_error(cause)
        self.close()

    def close(self) -> None:
        """Close at once, without a word to who waits."""
        self.open = False
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast, not a check: uvloop's transports are no subclasses.
        self._transport = cast("asyncio.Transport", transport)
        self.open = True
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            self.close()
            return
        self._received += len(data)
        trouble: Cause | None = None
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            trouble = Why.OTHER_PROTOCOL.because()
        except httptools.HttpParserError as error:
            trouble = Why.NO_HTTP.because(error)
        if self._body_bytes > self._most_bytes or self._received > self._budget:
            self.fail(Why.TOO_LARGE.because(self._most_bytes, _MAX_HEAD_BYTES))
        elif self._complete:
            self._settle_reply(is_over=trouble is not None)
        elif trouble:
            self.fail(trouble)

    def eof_received(self) -> None:
        self.open = False
        if self._waiter is not None and self._status >= 200 and self._ends_at_eof:
            self._settle_reply(is_over=True)
        else:
            self._settle_error(Why.INCOMPLETE.because())

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False
        self.reusable = False
        self._settle_error(Why.CLOSED.because() if exc is None else Why.LOST.because(exc))
        self._on_lost(self)

    # What the parser calls.

    def on_message_begin(self) -> None:
        # A second reply to one request: this connection is out of step.
        if self._complete:
            self.reusable = False

    def on_header(self, name: bytes, value: bytes) -> None:
        lowered = name.lower()
        if lowered == b"content-length" or (lowered == b"transfer-encoding" and value.lower().endswith(b"chunked")):
            self._ends_at_eof = False

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200 and not self._complete:
            self._status = status
            # In chunks of one byte each it has six on the wire for each of its body; nobody honest does that.
            self._budget = _MAX_HEAD_BYTES + 2 * self._most_bytes

    def on_body(self, body: bytes) -> None:
        if not self._complete:
            self._body.append(body)
            self._body_bytes += len(body)

    def on_message_complete(self) -> None:
        # A 1xx is only a word in between; the reply follows.
        if self._status >= 200 and not self._complete:
            self._complete = True
            self.reusable = self._parser.should_keep_alive()

    # The end of a request.

    def _settle_reply(self, *, is_over: bool) -> None:
        assert self._waiter is not None
        assert self._transport is not None
        waiter, self._waiter = self._waiter, None
        if not waiter.done():
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            waiter.set_result(WireReply(self._status, body))
        # An answer that came before the whole request was written leaves the rest of the request in the way.
        if is_over or not self.reusable or self._transport.get_write_buffer_size():
            self.close()

    def _settle_error(self, cause: Cause) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(UncertainError(self._url, cause))
