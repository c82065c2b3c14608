"""The executor's settings: arguments before `JOBWHEEL_EXECUTOR_*` before defaults."""

import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from jobwheel.executor.errors import SettingError
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.secret import Secret
from jobwheel.wire.messages import Dialect

log = get_logger(__name__)

PREFIX: Final = "JOBWHEEL_EXECUTOR_"

_TRUE = frozenset({"true", "1", "yes", "on"})
_FALSE = frozenset({"false", "0", "no", "off"})
_WEAK_TOKENS = frozenset({"default_token", "123456"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorSettings:
    """Everything that can be set.

    `admins` are the roots of the admins without a slash at the end. `access_tokens` are all accepted, the first is the
    one that is sent. A `port` of 0 or less means the next free one from 9999 up. Names that end in `_s` are seconds.
    Without an app name or an admin nothing is registered. With a certificate and its key the server speaks https;
    `ca_file` holds the authorities that vouch for admins, if the system's do not.
    """

    app_name: str = ""
    admins: tuple[str, ...] = ()
    access_tokens: tuple[Secret, ...] = ()
    address: str | None = None
    ip: str | None = None
    host: str = "127.0.0.1"
    port: int = 9999
    log_path: Path = Path()
    dialect: Dialect = Dialect.B
    heartbeat_s: float = 30.0
    queue_limit: int = 1000
    timeout_s: float = 3.0
    stop_deadline_s: float = 30.0
    idle_s: float = 90.0
    grace_s: float = 5.0
    embedded_server: bool = True
    enabled: bool = True
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    ca_file: Path | None = None

    @property
    def registers(self) -> bool:
        """Whether there is somebody to register with, and a name to do it under."""
        return bool(self.app_name and self.admins)


def resolve(arguments: Mapping[str, object], environ: Mapping[str, str]) -> ExecutorSettings:
    """The settings that hold: an argument that is not None, else the environment, else the default.

    Raises:
        SettingError: a value cannot work; names the setting and what is valid.
    """
    unknown = [name for name in arguments if name not in _PARSERS]
    if unknown:
        raise SettingError(unknown[0], arguments[unknown[0]], f"left out: the settings are {', '.join(_PARSERS)}")
    values: dict[str, Any] = {}
    for name, (target, parse) in _PARSERS.items():
        value = arguments.get(name)
        source = name
        if value is None:
            source = PREFIX + name.upper()
            value = _from_environment(source, environ)
        if value is not None:
            values[target] = parse(source, value)
    _warn_of_unknown(environ)
    return _checked(_with_log_path(ExecutorSettings(**values)))


def _from_environment(variable: str, environ: Mapping[str, str]) -> str | None:
    value = environ.get(variable, "").strip() or None
    if value and variable == PREFIX + "PORT" and "://" in value:
        # A cluster injects an address of this form for a service that happens to bear our name.
        log.warning("executor.setting_ignored", setting=variable, value=value, reason="not a port but an address")
        return None
    return value


def _warn_of_unknown(environ: Mapping[str, str]) -> None:
    known = {PREFIX + name.upper() for name in _PARSERS}
    unknown = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if unknown:
        log.warning("executor.settings_unknown", names=",".join(unknown))


def _with_log_path(settings: ExecutorSettings) -> ExecutorSettings:
    if settings.log_path != Path():
        return settings
    default = Path(".jobwheel") / "executor" / (settings.app_name or "unnamed")
    known = {item.name: getattr(settings, item.name) for item in fields(settings)}
    return ExecutorSettings(**{**known, "log_path": default})


def _checked(settings: ExecutorSettings) -> ExecutorSettings:
    if not settings.access_tokens and not is_loopback(settings.host):
        raise SettingError("access_token", "", f"set when host is {settings.host}: without it only loopback is served")
    if settings.registers and not settings.embedded_server and settings.address is None:
        raise SettingError("address", None, "set when embedded_server is off: nobody else knows where the app listens")
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


def _tokens(setting: str, value: object) -> tuple[Secret, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence):
        raise SettingError(setting, "***", "a text or a list of texts")
    tokens = []
    for part in parts:
        if not isinstance(part, str) or any(ord(character) < 33 or ord(character) > 126 for character in part.strip()):
            raise SettingError(setting, "***", "made of visible ASCII characters")
        if part.strip() in _WEAK_TOKENS:
            log.warning("executor.weak_token", setting=setting, advice="choose a long random one")
        if part.strip():
            tokens.append(Secret(part.strip()))
    return tuple(tokens)


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


def _dialect(setting: str, value: object) -> Dialect:
    try:
        return Dialect(str(value).strip().upper())
    except ValueError as error:
        raise SettingError(setting, value, "one of A (2.2), B (2.3 to 3.4), C (3.5 and later)") from error


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
    "access_token": ("access_tokens", _tokens),
    "address": ("address", _address),
    "ip": ("ip", _ip),
    "host": ("host", _host),
    "port": ("port", _whole(-65535, 65535)),
    "log_path": ("log_path", _path),
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
}
