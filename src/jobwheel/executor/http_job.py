"""The built-in handler `httpJobHandler`: sends a request to one of the hosts that the executor's settings allow."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from jobwheel.executor.allowed import AllowedHost
from jobwheel.executor.context import JobContext
from jobwheel.executor.http_job_parameter import HttpJob, read_job
from jobwheel.wire.client_connection import ClientConnection, WireReply
from jobwheel.wire.client_request import Target, parse_target, request_bytes, request_head
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.messages import MAX_BODY_BYTES

HTTP_JOB: Final = "httpJobHandler"

_MOST_LOGGED: Final = 65_536

Tls = Callable[[], ssl.SSLContext]
"""Makes what https servers are checked with, when one is asked."""


def http_job(hosts: Sequence[AllowedHost], tls: Tls) -> Callable[[JobContext], Coroutine[Any, Any, None]]:
    """The handler. An answer of another status than 200 fails the run; redirects are not followed."""

    async def send(context: JobContext) -> None:
        try:
            job = read_job(context.parameter)
            target = parse_target(job.url, job.method)
            head = request_head(job.url, target, job.all_headers)
        except (ValueError, UnreachableError) as error:
            context.fail(f"nothing was sent: {error}")
            return
        try:
            async with asyncio.timeout(job.timeout_s):
                addresses = await _checked_addresses(target, hosts)
                reply = await _exchange(job, target, addresses, request_bytes(head, job.body), tls)
        except TimeoutError:
            context.fail(f"no whole answer within {job.timeout} ms; the request may have arrived")
        except (UnreachableError, UncertainError) as error:
            context.fail(error.message)
        else:
            _settle(context, job, reply)

    return send


def _settle(context: JobContext, job: HttpJob, reply: WireReply) -> None:
    text = reply.body[:_MOST_LOGGED].decode(errors="replace")
    cut = f"\n… cut: {len(reply.body)} bytes in all" if len(reply.body) > _MOST_LOGGED else ""
    # Not through `logging`: an answer is nothing for the application's own log.
    context.run_log.write("INFO", f"HTTP {reply.status}, {len(reply.body)} bytes\n{text}{cut}")
    if reply.status == 200:
        context.succeed("HTTP 200")
    elif 300 <= reply.status < 400:
        context.fail(f"HTTP {reply.status}: it points elsewhere, and redirects are not followed; give the final URL")
    else:
        context.fail(f"HTTP {reply.status} from {job.method} {job.url}")


async def _checked_addresses(target: Target, hosts: Sequence[AllowedHost]) -> list[str]:
    """The addresses of the target's host, if it is allowed and none of them is a place that no host should lead to.

    Raises:
        UnreachableError: it is not allowed, or has no such addresses; says what to do.
    """
    scheme, host, port = target.origin
    url = f"{scheme}://{AllowedHost(host, port)}"
    if not any(each.host == host and each.port in (None, port) for each in hosts):
        allowed = ", ".join(str(each) for each in hosts)
        raise UnreachableError(url, f"the executor's setting http_job_hosts allows {allowed}")
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnreachableError(url, f"its name has no address ({error})") from error
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for address in addresses:
        if _leads_astray(address) and not _means_it(host, address, hosts):
            what_to_do = f"if that is meant, name {address} itself in http_job_hosts"
            raise UnreachableError(url, f"its name stands for {address}, which is no address of a server; {what_to_do}")
    return addresses


def _leads_astray(address: str) -> bool:
    """Whether it is this machine, the local link (where clouds keep credentials), or nobody in particular."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    return ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified or ip.is_reserved


def _means_it(host: str, address: str, hosts: Sequence[AllowedHost]) -> bool:
    if host == "localhost":
        return ipaddress.ip_address(address).is_loopback
    return any(each.host == address for each in hosts)


async def _exchange(job: HttpJob, target: Target, addresses: Sequence[str], request: bytes, tls: Tls) -> WireReply:
    """Send the request to the first of the addresses that takes a connection, and read the answer.

    Raises:
        UnreachableError: none does.
        UncertainError: no readable answer came.
    """
    scheme, host, port = target.origin
    secure: dict[str, Any] = {"ssl": tls(), "server_hostname": host} if scheme == "https" else {}
    lost = asyncio.Event()
    connection = ClientConnection(lambda _: lost.set())
    for at, address in enumerate(addresses, 1):
        try:
            # By the address that was checked: the name could stand for another one by now.
            await asyncio.get_running_loop().create_connection(lambda: connection, address, port, **secure)
            break
        except OSError as error:
            if at == len(addresses):
                raise UnreachableError(job.url, str(error)) from error
    try:
        return await connection.send(job.url, request, MAX_BODY_BYTES)
    finally:
        connection.close()
        await lost.wait()
