"""The network interfaces of this machine, and which of their addresses a setting means."""

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path
from typing import Final

from jobwheel.executor.errors import SettingError

_GET_ADDRESS: Final = 0x8915  # SIOCGIFADDR of Linux
_IPV6_TABLE: Final = Path("/proc/net/if_inet6")
_SCOPE_LINK: Final = "20"


def address_in(networks: tuple[str, ...], *, ipv6: bool) -> str:
    """The address of the first of `networks` that this machine has one in.

    Args:
        networks: each the name of an interface, or a subnet.
        ipv6: whether addresses of IPv6 will do.

    Raises:
        SettingError: there is none; names what there is.
    """
    known = interface_addresses(ipv6=ipv6)
    for network in networks:
        for name, address in known:
            if name == network or _is_in(address, network):
                return address
    there = ", ".join(f"{name} {address}" for name, address in known) or "none"
    raise SettingError("network", ",".join(networks), f"an interface or a subnet of this machine, which has: {there}")


def interface_addresses(*, ipv6: bool) -> list[tuple[str, str]]:
    """The interfaces by name with their addresses, those of IPv4 first. Link-local ones of IPv6 are left out."""
    found = [(name, address) for _, name in socket.if_nameindex() if (address := _ipv4_of(name)) is not None]
    return found + (_ipv6_addresses() if ipv6 else [])


def _ipv4_of(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            reply = fcntl.ioctl(probe, _GET_ADDRESS, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return None  # it has none
    return socket.inet_ntoa(reply[20:24])


def _ipv6_addresses() -> list[tuple[str, str]]:
    try:
        rows = [line.split() for line in _IPV6_TABLE.read_text().splitlines()]
    except OSError:
        return []
    return [(row[5], str(ipaddress.IPv6Address(int(row[0], 16)))) for row in rows if row[3] != _SCOPE_LINK]


def _is_in(address: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(address) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False  # the name of an interface


def parse_networks(setting: str, value: object) -> tuple[str, ...]:
    """The setting `network`: names of interfaces and subnets, with commas between them or in a list.

    Raises:
        SettingError: one of them can be neither.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not parts or not all(_is_network(part) for part in parts):
        valid = "names of interfaces or subnets such as 10.0.0.0/8, with commas between them"
        raise SettingError(setting, value, valid)
    return tuple(part.strip() for part in parts)


def _is_network(part: object) -> bool:
    """Whether it can be an interface's name, or is a subnet: nothing but a subnet has a slash."""
    name = part.strip() if isinstance(part, str) else ""
    if "/" not in name:
        return name != "" and not any(character.isspace() for character in name)
    try:
        ipaddress.ip_network(name, strict=False)
    except ValueError:
        return False
    return True
