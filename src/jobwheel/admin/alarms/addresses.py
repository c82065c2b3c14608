"""Where a name leads, and whether requests may go there."""

import asyncio
import ipaddress
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Final

_THREADS: Final = 8
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


class Resolver:
    """Looks names up in threads of its own: a name server that hangs keeps nobody else's work waiting."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="alarm-names")

    async def resolve(self, host: str, port: int) -> list[str]:
        """The addresses of a name, in the order in which they are to be tried.

        Raises:
            OSError: there are none.
        """
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, host, port)
        return list(dict.fromkeys(found))

    def close(self) -> None:
        """Let the threads end; those that hang are not waited for."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(host: str, port: int) -> list[str]:
    return [str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def is_public(address: str) -> bool:
    """Whether an address is one of the internet: not this machine, a private network, a cloud's own services."""
    ip: IpAddress = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        # An IPv4 address in the clothes of IPv6 is judged as what it leads to.
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            ip = inner
    return ip.is_global and not ip.is_multicast
