"""What every request passes before it reaches a route: who asks, from where, and how much it brings."""

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from jobwheel.admin.api.access import AccessTable
from jobwheel.admin.api.errors import error_response, reply_to, reply_to_outage, status_of
from jobwheel.admin.api.identity import Doorkeeper, uses_token
from jobwheel.admin.store.database import is_outage
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

ASKER_KEY: Final = "jobwheel.asker"
MOST_BODY_BYTES: Final = 1024 * 1024
MOST_DOCUMENT_BYTES: Final = 10 * 1024 * 1024
MOST_DEPTH: Final = 32

# A thousand jobs with their scripts.
_DOCUMENTS: Final = frozenset({"/api/v1/jobs/plan", "/api/v1/jobs/apply"})

_SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
# The closing quote may be missing: a search that fails there and begins again at the next quote would be quadratic.
_JSON_STRING: Final = re.compile(rb'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Gate:
    """ASGI middleware that enforces the access table, the same-origin rule and the body limits.

    A route behind it finds who asks in the scope under `ASKER_KEY`. All replies get the security headers.
    """

    def __init__(self, app: ASGIApp, doorkeeper: Doorkeeper) -> None:
        self._app = app
        self._doorkeeper = doorkeeper
        self._table = AccessTable()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface. Web sockets and other things that are not HTTP are refused by not being served."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        send = _with_headers(send)
        refusal = await self._refusal(scope)
        body = b""
        if refusal is None:
            try:
                body, refusal = await _read_body(scope, receive)
            except ClientDisconnect:
                # Nothing is done: of a body of which a part is missing, what is there may say something else. Many are
                # optional, and would then be taken for one that was left out.
                log.warning("api.body_ended_early", method=scope["method"], path=scope["path"])
                return
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, _replay(body, receive), send)

    async def _refusal(self, scope: Scope) -> Response | None:
        method, path = scope["method"], scope["path"]
        found = self._table.find(method, path)
        if found is None:
            return _no_route(method, path, self._table.methods(path))
        headers = Headers(scope=scope)
        # A page of another site makes browsers send cookies, but no tokens.
        may_be_foreign = method in _SAFE_METHODS or uses_token(found.rule.who, headers)
        if not may_be_foreign and not _is_same_origin(headers, scope["scheme"]):
            message = "a change must come from a page of this server, not from that of another"
            return error_response(403, "foreign_origin", message)
        client = scope.get("client")
        try:
            scope[ASKER_KEY] = await self._doorkeeper.admit(found, headers, client[0] if client else "unknown")
        except Exception as error:
            if is_outage(error):
                return reply_to_outage(path, error)
            if isinstance(error, JobwheelError) and status_of(error) != 500:
                return reply_to(error)
            raise
        return None


def _no_route(method: str, path: str, methods: Sequence[str]) -> Response:
    if not methods:
        return error_response(404, "not_found", f"there is nothing at {path[:200]}")
    allowed = ", ".join(sorted(methods))
    message = f"{method[:20]} is not possible at {path[:200]}; possible: {allowed}"
    return error_response(405, "method_not_allowed", message, None, {"Allow": allowed})


def _is_same_origin(headers: Headers, scheme: str) -> bool:
    """Whether a page of this server, or no page at all (a program), sent the request."""
    if headers.get("sec-fetch-site", "none") in ("cross-site", "same-site"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        sender = urlsplit(origin)
        if scheme == "https" and sender.scheme != "https":
            return False
        # A proxy may end TLS, so that the page has https and the request to us http: its port is what counts.
        host = urlsplit(f"//{headers.get('host', '')}")
        default_port = _DEFAULT_PORTS.get(sender.scheme)
        return (
            default_port is not None
            and sender.hostname is not None
            and sender.hostname == host.hostname
            and (sender.port or default_port) == (host.port or default_port)
        )
    except ValueError:
        return False


async def _read_body(scope: Scope, receive: Receive) -> tuple[bytes, Response | None]:
    """The whole body, if it is not too large, too deep or of another kind than JSON or a form.

    Raises:
        ClientDisconnect: the rest of it does not come.
    """
    headers = Headers(scope=scope)
    most = MOST_DOCUMENT_BYTES if scope["path"] in _DOCUMENTS else MOST_BODY_BYTES
    too_large = error_response(413, "too_large", f"the body is larger than {most} bytes")
    length = headers.get("content-length", "0")
    if not length.isdigit() or len(length) > 12 or int(length) > most:
        return b"", too_large
    chunks = bytearray()
    more = scope["method"] not in _SAFE_METHODS
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks += message.get("body", b"")
        more = message.get("more_body", False)
        if len(chunks) > most:
            return b"", too_large
    body = bytes(chunks)
    return body, _wrong_kind(headers, body) if body else None


def _wrong_kind(headers: Headers, body: bytes) -> Response | None:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return None
    if kind != "application/json":
        return error_response(415, "not_json", "the body must be JSON: send Content-Type: application/json")
    if _is_too_deep(body):
        return error_response(400, "malformed_json", f"the body is nested deeper than {MOST_DEPTH} levels")
    return None


def _is_too_deep(body: bytes) -> bool:
    if body.count(b"[") + body.count(b"{") <= MOST_DEPTH:
        return False
    depth = 0
    for bracket in _BRACKET.findall(_JSON_STRING.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > MOST_DEPTH:
            return True
    return False


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give the body that was read once more, then whatever comes (a disconnect)."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _with_headers(send: Send) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers
