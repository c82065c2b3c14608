"""Under which address this executor is registered, and why."""

import ipaddress
import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from jobwheel.executor.interfaces import address_in
from jobwheel.executor.settings import WILDCARDS, ExecutorSettings, is_loopback

_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RegisteredAddress:
    """An address, the reason for it, and a warning if it will likely not work."""

    url: str
    reason: str
    warning: str | None = None


def choose_address(settings: ExecutorSettings, port: int) -> RegisteredAddress:
    """The address to register: the setting `address`, else `ip`, else `network`, else what the machine's network says.

    May look up the admins' names, so call it off the event loop.

    Args:
        settings: the executor's.
        port: where its server listens.

    Raises:
        SettingError: the machine has no address in the setting `network`.
    """
    if settings.address is not None:
        return RegisteredAddress(settings.address, "setting address")
    if settings.ip is not None:
        return RegisteredAddress(_url(settings, settings.ip, port), "setting ip")
    if settings.network:
        address = address_in(settings.network, ipv6=settings.host == "::")
        return RegisteredAddress(_url(settings, address, port), "setting network")
    if is_loopback(settings.host):
        return RegisteredAddress(_url(settings, settings.host, port), "host is loopback", _loopback_warning(settings))
    if settings.host not in WILDCARDS:
        return RegisteredAddress(_url(settings, settings.host, port), "setting host")
    return _towards_admin(settings, port)


def _towards_admin(settings: ExecutorSettings, port: int) -> RegisteredAddress:
    for admin in settings.admins:
        interface = interface_towards(urlsplit(admin).hostname or "", settings.host)
        if interface is not None:
            return RegisteredAddress(_url(settings, interface, port), f"the interface that reaches {admin}")
    warning = "no admin's host could be looked up; set ip or address"
    return RegisteredAddress(_url(settings, _LOOPBACK, port), "no better one is known", warning)


def interface_towards(host: str, bound: str) -> str | None:
    """The address of the interface that packets to `host` leave by; None if there is no way. Sends nothing.

    Args:
        host: a name or address.
        bound: the wildcard that the server listens on: 0.0.0.0 takes no IPv6.
    """
    family = socket.AF_UNSPEC if ":" in bound else socket.AF_INET
    try:
        candidates = socket.getaddrinfo(host, 9, family, socket.SOCK_DGRAM)
    except OSError:
        return None
    for candidate_family, _, _, _, destination in candidates:
        with socket.socket(candidate_family, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(destination)
            except OSError:
                continue
            return str(probe.getsockname()[0])
    return None


def _loopback_warning(settings: ExecutorSettings) -> str | None:
    far = [admin for admin in settings.admins if not is_loopback(urlsplit(admin).hostname or "")]
    return f"{far[0]} is on another machine and cannot reach it; set host, ip or address" if far else None


def _url(settings: ExecutorSettings, host: str, port: int) -> str:
    try:
        bracketed = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        bracketed = host
    scheme = "https" if settings.tls_certificate else "http"
    return f"{scheme}://{bracketed}:{port}/"
