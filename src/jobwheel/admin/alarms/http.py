"""Requests of webhooks: to public addresses unless a setting says otherwise, redirects not followed."""

import asyncio
import ipaddress
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit

from jobwheel.admin.alarms.addresses import Resolver, is_public
from jobwheel.admin.alarms.errors import ChannelError

if TYPE_CHECKING:
    from jobwheel.admin.alarms.http_exchange import HttpExchange

_MOST_SHOWN: Final = 300


@dataclass(frozen=True, slots=True)
class HttpReply:
    """What the far side said: the beginning of its text."""

    status: int
    text: str

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def shown(self) -> str:
        """The reply in one line."""
        text = " ".join(self.text.split())[:_MOST_SHOWN]
        words = "".join(each if each.isprintable() else " " for each in text)
        return f"HTTP {self.status} {words}".strip()


class HttpSender:
    """Sends requests, each over a connection of its own.

    Args:
        resolver: looks names up; whoever made it closes it.
        timeout_s: how long a request may take in all.
        allows_private: whether loopback, private and link-local addresses may be asked.
        tls: whom to trust; None = the system's authorities.
    """

    def __init__(
        self,
        resolver: Resolver,
        *,
        timeout_s: float = 15.0,
        allows_private: bool = False,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._resolver = resolver
        self._timeout_s = timeout_s
        self._allows_private = allows_private
        self._tls = tls
        self._exchange: HttpExchange | None = None

    async def send(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> HttpReply:
        """Send a request, and read the reply's beginning.

        The name is looked up once and the request goes to the address that was checked: what the name leads to a
        moment later does not matter.

        Raises:
            ChannelError: there was no reply; says why without the URL, which may hold a secret.
        """
        if self._exchange is None:
            # Beside the event loop: the library takes a tenth of a second. And 9 MiB, which who sends nothing has free.
            self._exchange = await asyncio.to_thread(_load_exchange, self._tls)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._send(self._exchange, method, url, body, headers)
        except TimeoutError as error:
            raise ChannelError(f"no reply within {self._timeout_s:g} s") from error
        except (OSError, UnicodeError) as error:
            raise ChannelError(f"no reply: {_reason(error)}") from error

    async def _send(
        self, exchange: "HttpExchange", method: str, url: str, body: bytes, headers: Mapping[str, str]
    ) -> HttpReply:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await self._checked_address(host, port)
        # Asked by the address that was checked; nothing is unpacked, so that a small reply stays one.
        sent = {"User-Agent": "jobwheel", **headers, "Host": _host_header(parts), "Connection": "close"}
        status, reply = await exchange.run(method, url, body, sent, address=address, timeout_s=self._timeout_s)
        return HttpReply(status, reply.decode("utf-8", errors="replace"))

    async def _checked_address(self, host: str, port: int) -> str:
        addresses = await self._resolver.resolve(host, port)
        if not addresses:
            raise ChannelError(f"{host} has no address")
        if not self._allows_private:
            for each in addresses:
                if not is_public(each):
                    raise ChannelError(
                        f"{host} leads to {each}, which is no public address; "
                        "JOBWHEEL_ALARMS_TO_PRIVATE_ADDRESSES=true allows it"
                    )
        return addresses[0]


def _host_header(parts: SplitResult) -> str:
    host = parts.hostname or ""
    shown = f"[{host}]" if _is_ipv6(host) else host
    return shown if parts.port is None else f"{shown}:{parts.port}"


def _is_ipv6(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _load_exchange(tls: ssl.SSLContext | None) -> "HttpExchange":
    from jobwheel.admin.alarms.http_exchange import HttpExchange  # noqa: PLC0415 - see where it is called

    return HttpExchange(tls or ssl.create_default_context())


def _reason(error: Exception) -> str:
    return (str(error) or type(error).__name__).partition("\n")[0][:_MOST_SHOWN]
