"""The executor's settings: arguments before `JOBWHEEL_EXECUTOR_*` before a file before defaults."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jobwheel.executor.access_tokens import parse_tokens, read_tokens
from jobwheel.executor.allowed import AllowedHost, read_hosts, read_programs
from jobwheel.executor.errors import SettingError
from jobwheel.executor.interfaces import parse_networks
from jobwheel.executor.settings_sources import Given, given_settings
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.secret import Secret
from jobwheel.wire.messages import Dialect

log = get_logger(__name__)

WILDCARDS: Final = frozenset({"0.0.0.0", "::", "*"})  # noqa: S104 - recognised, not bound
_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """Everything that can be set.

    `admins` are the roots of the admins without a slash at the end. `access_tokens` are all accepted, the first is the
    one that is sent. A `port` of 0 or less means the next free one from 9999 up. Names that end in `_s` are seconds, in
    `_mb` mebibytes; 0 days or mebibytes of logs are no limit. Without a `dialect` it is learnt from each admin.
    Without an app name or an admin nothing is registered. With a certificate and its key the server speaks https;
    `ca_file` holds the authorities that vouch for admins, if the system's do not.

    Scripts run, and the handlers `httpJobHandler` and `commandJobHandler` exist, only where they are allowed: they do
    what whoever edits jobs tells them to.
    """

    app_name: str = ""
    admins: tuple[str, ...] = ()
    access_tokens: tuple[Secret, ...] = ()
    access_token_file: Path | None = None
    address: str | None = None
    ip: str | None = None
    network: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = 9999
    log_path: Path = Path()
    log_retention_days: int = 30
    log_limit_mb: int = 0
    dialect: Dialect | None = None
    heartbeat_s: float = 30.0
    queue_limit: int = 1000
    timeout_s: float = 3.0
    stop_deadline_s: float = 30.0
    idle_s: float = 90.0
    grace_s: float = 2.0
    embedded_server: bool = True
    enabled: bool = True
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    ca_file: Path | None = None
    scripts_enabled: bool = False
    http_job_hosts: tuple[AllowedHost, ...] = ()
    command_job_programs: tuple[str, ...] = ()
    sample_handlers: bool = False

    @property
    def registers(self) -> bool:
        """Whether there is somebody to register with, and a name to do it under."""
        return bool(self.app_name and self.admins)


def resolve(arguments: Mapping[str, object], environ: Mapping[str, str]) -> ExecutorSettings:
    """The settings that hold: an argument that is not None, else the environment, else the file, else the default.

    The file is the one that the argument `config` or `JOBWHEEL_EXECUTOR_CONFIG` names; it uses the arguments' names.

    Raises:
        SettingError: a value cannot work, or a name is no setting; names the setting and what is valid.
    """
    values: dict[str, Any] = {}
    given = {each.name: each for each in given_settings(tuple(_PARSERS), arguments, environ)}
    _keep_one(given, "access_token", "access_token_file")
    for each in given.values():
        target, parse = _PARSERS[each.name]
        values[target] = parse(each.source, each.value)
    return _checked(_with_log_path(_with_token_file(ExecutorSettings(**values))))


def _keep_one(given: dict[str, Given], name: str, other: str) -> None:
    """Of two ways to say one thing the one that counts more; both in one place are left to be refused."""
    if name in given and other in given and given[name].rank != given[other].rank:
        del given[max(name, other, key=lambda each: given[each].rank)]


def _with_log_path(settings: ExecutorSettings) -> ExecutorSettings:
    if settings.log_path != Path():
        return settings
    return replace(settings, log_path=Path(".jobwheel") / "executor" / (settings.app_name or "unnamed"))


def _with_token_file(settings: ExecutorSettings) -> ExecutorSettings:
    path = settings.access_token_file
    if path is None:
        return settings
    if settings.access_tokens:
        raise SettingError("access_token_file", path, "left out when access_token is set")
    return replace(settings, access_tokens=read_tokens("access_token_file", path))


def _checked(settings: ExecutorSettings) -> ExecutorSettings:
    if not settings.access_tokens and not is_loopback(settings.host):
        raise SettingError("access_token", "", f"set when host is {settings.host}: without it only loopback is served")
    if not settings.access_tokens and settings.address and not settings.embedded_server:
        served = urlsplit(settings.address).hostname or ""
        if not is_loopback(served):
            raise SettingError("access_token", "", f"set when the application listens at {served}, beyond this machine")
    if settings.registers and not settings.embedded_server and settings.address is None:
        raise SettingError("address", None, "set when embedded_server is off: nobody else knows where the app listens")
    if settings.network and settings.host not in WILDCARDS:
        raise SettingError("network", ",".join(settings.network), f"left out when host is {settings.host}")
    for given, missing in (("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")):
        if getattr(settings, given) and not getattr(settings, missing):
            raise SettingError(missing, None, f"set when {given} is")
    return settings


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _text(setting: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingError(setting, value, "a text")
    return value.strip()


def _app_name(setting: str, value: object) -> str:
    text = _text(setting, value)
    if not all(character.isalnum() or character in "-_." for character in text) or text in {".", ".."}:
        raise SettingError(setting, value, "of letters, digits, '-', '_' and '.' alone")
    return text


def _admins(setting: str, value: object) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise SettingError(setting, value, "an address or a list of addresses")
    roots = [_url(setting, part) for part in parts if not isinstance(part, str) or part.strip()]
    return tuple(dict.fromkeys(root.rstrip("/") for root in roots))


def _address(setting: str, value: object) -> str | None:
    return _url(setting, value) if _text(setting, value) else None


def _url(setting: str, value: object) -> str:
    """A URL with single slashes in its path."""
    text = _text(setting, value)
    valid = "a URL like http://127.0.0.1:8080, without user, query and fragment"
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:
        raise SettingError(setting, value, valid) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise SettingError(setting, value, valid)
    if parts.query or parts.fragment or any(character.isspace() for character in text):
        raise SettingError(setting, value, valid)
    path = "/".join(part for part in parts.path.split("/") if part)
    return f"{parts.scheme}://{parts.netloc}/{path}" + ("/" if path and parts.path.endswith("/") else "")


def _ip(setting: str, value: object) -> str | None:
    text = _text(setting, value).strip("[]")
    if any(character.isspace() or character in "/@?#" for character in text):
        raise SettingError(setting, value, "an IP address or a host name")
    return text or None


def _host(setting: str, value: object) -> str:
    text = _ip(setting, value)
    if text is None:
        raise SettingError(setting, value, "an IP address or a host name to listen on, such as 127.0.0.1 or 0.0.0.0")
    return text


def _whole(least: int, most: int) -> Callable[[str, object], int]:
    def parse(setting: str, value: object) -> int:
        valid = f"a whole number from {least} to {most}"
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise SettingError(setting, value, valid)
        try:
            number = int(value)
        except ValueError as error:
            raise SettingError(setting, value, valid) from error
        if not least <= number <= most:
            raise SettingError(setting, value, valid)
        return number

    return parse


def _seconds(least: float, most: float) -> Callable[[str, object], float]:
    def parse(setting: str, value: object) -> float:
        valid = f"a number of seconds from {least:g} to {most:g}"
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise SettingError(setting, value, valid)
        try:
            number = float(value)
        except ValueError as error:
            raise SettingError(setting, value, valid) from error
        if not least <= number <= most:
            raise SettingError(setting, value, valid)
        return number

    return parse


def _flag(setting: str, value: object) -> bool:
    text = str(value).strip().lower()
    if text not in _TRUE | _FALSE:
        raise SettingError(setting, value, "true or false")
    return text in _TRUE


def _dialect(setting: str, value: object) -> Dialect | None:
    text = str(value).strip().upper()
    if text == "AUTO":
        return None
    try:
        return Dialect(text)
    except ValueError as error:
        raise SettingError(setting, value, "auto, or one of A (2.2), B (2.3 to 3.4), C (3.5 and later)") from error


def _path(setting: str, value: object) -> Path:
    if not isinstance(value, str | Path) or not str(value).strip():
        raise SettingError(setting, value, "a folder")
    return Path(value).expanduser()


def _file(setting: str, value: object) -> Path:
    path = _path(setting, value)
    if not path.is_file():
        raise SettingError(setting, value, "a file that exists")
    return path


_PARSERS: Final[Mapping[str, tuple[str, Callable[[str, object], Any]]]] = {
    "app_name": ("app_name", _app_name),
    "admin": ("admins", _admins),
    "access_token": ("access_tokens", parse_tokens),
    "access_token_file": ("access_token_file", _file),
    "address": ("address", _address),
    "ip": ("ip", _ip),
    "network": ("network", parse_networks),
    "host": ("host", _host),
    "port": ("port", _whole(-65535, 65535)),
    "log_path": ("log_path", _path),
    "log_retention_days": ("log_retention_days", _whole(0, 36_500)),
    "log_limit_mb": ("log_limit_mb", _whole(0, 1_000_000_000)),
    "dialect": ("dialect", _dialect),
    "heartbeat_s": ("heartbeat_s", _seconds(0.01, 80)),
    "queue_limit": ("queue_limit", _whole(1, 1_000_000)),
    "timeout_s": ("timeout_s", _seconds(0.1, 600)),
    "stop_deadline_s": ("stop_deadline_s", _seconds(0, 86400)),
    "idle_s": ("idle_s", _seconds(0.001, 86400)),
    "grace_s": ("grace_s", _seconds(0, 3600)),
    "embedded_server": ("embedded_server", _flag),
    "enabled": ("enabled", _flag),
    "tls_certificate": ("tls_certificate", _file),
    "tls_key": ("tls_key", _file),
    "ca_file": ("ca_file", _file),
    "scripts_enabled": ("scripts_enabled", _flag),
    "http_job_hosts": ("http_job_hosts", read_hosts),
    "command_job_programs": ("command_job_programs", read_programs),
    "sample_handlers": ("sample_handlers", _flag),
}
