"""What the built-in handlers may do: the lists in the executor's settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from jobwheel.executor.errors import SettingError
from jobwheel.wire.client_request import parse_target
from jobwheel.wire.errors import UnreachableError


@dataclass(frozen=True, slots=True)
class AllowedHost:
    """A host that jobs may send requests to; `port` None: any."""

    host: str
    port: int | None = None

    def __str__(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port is None else f"{shown}:{self.port}"


def read_hosts(setting: str, value: object) -> tuple[AllowedHost, ...]:
    """The hosts that jobs may send requests to.

    Raises:
        SettingError: something that is no host.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise SettingError(setting, value, "a list of hosts")
    return tuple(_read_host(setting, part) for part in parts if not isinstance(part, str) or part.strip())


def _read_host(setting: str, part: object) -> AllowedHost:
    valid = "a list of hosts without wildcards, each with or without a port: api.example.com, 10.0.0.7:8080, [::1]:80"
    if not isinstance(part, str):
        raise SettingError(setting, part, valid)
    try:
        host = parse_target(f"http://{part.strip()}").origin[1]
        parts = urlsplit(f"http://{part.strip()}")
        if parts.path or parts.query or parts.fragment:
            raise SettingError(setting, part, valid)
        return AllowedHost(host, parts.port)
    except UnreachableError as error:
        raise SettingError(setting, part, f"{valid} ({error.reason})") from error


def read_programs(setting: str, value: object) -> tuple[str, ...]:
    """The programs that may be run: names that are looked up on the PATH, and absolute paths.

    Raises:
        SettingError: anything else.
    """
    parts = value.split(",") if isinstance(value, str) else value
    valid = "a list of programs, each a name such as rsync or an absolute path such as /usr/bin/rsync"
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise SettingError(setting, value, valid)
    programs = [part.strip() for part in parts if part.strip()]
    if any("/" in program and not program.startswith("/") for program in programs):
        raise SettingError(setting, value, valid)
    return tuple(dict.fromkeys(programs))
