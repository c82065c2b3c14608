"""What the client sends: addresses taken apart and checked, and the bytes of a request."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from jobwheel.wire.errors import UnreachableError
from jobwheel.wire.why import Cause, Why

_DEFAULT_PORTS = {"http": 80, "https": 443}
# Anything else could end the request line early, or be read differently by the peer. urlsplit drops some silently.
_URL_TEXT = re.compile(r"[\x21-\x7e]+")
_HOST_NAME = re.compile(r"[A-Za-z0-9._-]+")
_USER_INFO = re.compile(r"(?<=//)[^/?#]*@")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# They frame the request: a second one of them would let a value smuggle a request of its own.
_FRAMING_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "expect", "te"})


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL points: the peer's `origin` (scheme, host, port) and the first lines of a request there."""

    origin: tuple[str, str, int]
    head: str


def parse_target(url: str, method: str = "POST") -> Target:
    """Take a URL apart, to send a request of this method there.

    Raises:
        UnreachableError: it is not an http or https URL with a host, or it carries credentials.
    """
    if not _URL_TEXT.fullmatch(url):
        raise _refused(url, Why.URL_TEXT.because())
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(url, Why.NO_URL.because(error)) from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise _refused(url, Why.SCHEME.because())
    if "@" in parts.netloc:
        raise _refused(url, Why.CREDENTIALS.because())
    if port == 0:
        raise _refused(url, Why.PORT_0.because())
    host = _checked_host(url, parts.hostname or "")
    default_port = _DEFAULT_PORTS[parts.scheme]
    return Target((parts.scheme, host, port or default_port), _head(method, parts, host, port or default_port))


def request_head(url: str, target: Target, headers: Mapping[str, str]) -> bytes:
    """A request up to the length of its body, which `request_bytes` adds: the same for all requests like it.

    Raises:
        UnreachableError: a header's name or value cannot be sent. The message does not show the value: it may be a
            token.
    """
    lines = [target.head]
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or name.lower() in _FRAMING_HEADERS:
            raise UnreachableError(url, Why.HEADER_NAME.because(repr(name)))
        if not _HEADER_VALUE.fullmatch(value):
            raise UnreachableError(url, Why.HEADER_VALUE.because(repr(name)))
        lines.append(f"{name}: {value}\r\n")
    lines.append("Content-Length: ")
    return "".join(lines).encode("latin-1")


def request_bytes(head: bytes, body: bytes) -> bytes:
    """A whole request."""
    return b"%b%d\r\n\r\n%b" % (head, len(body), body)


def join_url(root: str, path: str) -> str:
    """The URL of `path` under a registered address, with exactly one slash between them."""
    return f"{root.rstrip('/')}/{path.lstrip('/')}"


def _head(method: str, parts: SplitResult, host: str, port: int) -> str:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    shown_host = f"[{host}]" if ":" in host else host
    if port != _DEFAULT_PORTS[parts.scheme]:
        shown_host = f"{shown_host}:{port}"
    return f"{method} {path} HTTP/1.1\r\nHost: {shown_host}\r\n"


def _checked_host(url: str, host: str) -> str:
    if not host:
        raise _refused(url, Why.NO_HOST.because())
    if ":" in host:
        try:
            address = ipaddress.IPv6Address(host)
        except ValueError as error:
            raise _refused(url, Why.NO_IPV6.because(error)) from error
        if address.scope_id is not None:
            raise _refused(url, Why.IPV6_ZONE.because())
    elif not _HOST_NAME.fullmatch(host):
        raise _refused(url, Why.HOST_CHARACTER.because())
    return host


def without_credentials(url: str) -> str:
    """The URL as it may be shown."""
    return _USER_INFO.sub("***@", url)


def _refused(url: str, cause: Cause) -> UnreachableError:
    return UnreachableError(without_credentials(url), cause)
