"""Requests by httpx, which is large: `http` loads this module with the first request."""

import ssl
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx

_MOST_REPLY: Final = 16_384


class HttpExchange:
    """Sends requests, each over a connection of its own.

    Args:
        tls: whom to trust.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls

    async def run(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], *, address: str, timeout_s: float
    ) -> tuple[int, bytes]:
        """Ask `address` for what the URL names; return the status and the reply's beginning.

        Raises:
            OSError: there was no reply.
        """
        each_s = dict.fromkeys(("connect", "read", "write", "pool"), timeout_s)
        try:
            request = httpx.Request(
                method,
                httpx.URL(url).copy_with(host=address),
                content=body,
                headers=dict(headers),
                extensions={"sni_hostname": urlsplit(url).hostname or "", "timeout": each_s},
            )
            return await self._reply_to(request)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise OSError(str(error) or type(error).__name__) from error

    async def _reply_to(self, request: httpx.Request) -> tuple[int, bytes]:
        # The transport alone: a client would follow the environment's proxies, and log the URL with its secret.
        async with httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False) as transport:
            reply = await transport.handle_async_request(request)
            try:
                return reply.status_code, await _beginning(reply)
            finally:
                await reply.aclose()


async def _beginning(reply: httpx.Response) -> bytes:
    data = b""
    async for chunk in reply.aiter_raw():
        data += chunk
        if len(data) >= _MOST_REPLY:
            break
    return data[:_MOST_REPLY]
