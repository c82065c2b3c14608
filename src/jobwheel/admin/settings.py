"""The admin's settings: one frozen object, read once at the start."""

import ssl
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from jobwheel.admin.settings_values import SettingValueError, read_value
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import LogFormat
from jobwheel.kernel.secret import Secret

Source = Literal["default", "file", "environment", "argument"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
LanguageName = Literal["en", "zh-CN", "zh-TW"]

PREFIX = "JOBWHEEL_"
CONFIG_VARIABLE = "JOBWHEEL_CONFIG"
WEAK_TOKENS = frozenset({"", "default_token", "123456"})
"""Tokens that everybody knows (`security.md`, Defaults)."""

_NOT_OURS = (
    "JOBWHEEL_EXECUTOR_",
    "JOBWHEEL_URL",
    "JOBWHEEL_TOKEN",
    "JOBWHEEL_JOB_ID",
    "JOBWHEEL_LOG_ID",
    "JOBWHEEL_PLANNED_TIME",
)
# A cluster gives the address of each of its services to every process, under names that collide with ours.
_INJECTED_PREFIXES = ("JOBWHEEL_PORT_", "JOBWHEEL_SERVICE_")


class SettingsError(JobwheelError):
    """A setting that cannot be used; `field` is its name."""

    code: ClassVar[str] = "setting_invalid"

    def __init__(self, name: str, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}", field=name)


@dataclass(frozen=True, slots=True)
class Settings:
    """What an operator can set. `database_url` and `data_dir` are absolute; `_s` means seconds, `_ms` milliseconds."""

    data_dir: Path = Path(".jobwheel")
    # It may hold a password.
    database_url: str = field(default="", repr=False)
    database_connections: int = field(default=10, metadata={"least": 2, "most": 1000})
    database_timeout_s: float = field(default=30.0, metadata={"least": 1.0, "most": 3600.0})
    host: str = "127.0.0.1"
    port: int = field(default=8080, metadata={"least": 0, "most": 65535})
    access_token: Secret | None = None
    allow_weak_token: bool = False
    admin_password: Secret | None = None
    metrics_token: Secret | None = None
    timezone: str | None = field(default=None, metadata={"kind": "zone"})
    language: LanguageName = "en"
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    auto_create_groups: bool = False
    public_url: str | None = field(default=None, metadata={"kind": "url"})
    trusted_proxies: str | None = field(default=None, metadata={"kind": "networks"})
    alarms_to_private_addresses: bool = False
    tls_certificate: Path | None = field(default=None, metadata={"kind": "file"})
    tls_key: Path | None = field(default=None, metadata={"kind": "file"})
    ca_file: Path | None = field(default=None, metadata={"kind": "file"})
    look_ahead_s: int = field(default=5, metadata={"least": 1, "most": 60})
    claim_batch: int = field(default=1000, metadata={"least": 1, "most": 10_000})
    misfire_most: int = field(default=100, metadata={"least": 1, "most": 1000})
    fast_lane: int = field(default=200, metadata={"least": 1, "most": 10_000})
    slow_lane: int = field(default=100, metadata={"least": 1, "most": 10_000})
    slow_send_ms: int = field(default=500, metadata={"least": 1, "most": 60_000})
    slow_sends: int = field(default=10, metadata={"least": 0, "most": 1_000_000})
    address_limit: int = field(default=32, metadata={"least": 1, "most": 10_000})
    send_timeout_s: float = field(default=3.0, metadata={"least": 0.1, "most": 60.0})
    wheel_capacity: int = field(default=200_000, metadata={"least": 1000, "most": 1_000_000})
    run_retention_days: int = field(default=30, metadata={"least": 0, "most": 36_500})
    event_retention_days: int = field(default=365, metadata={"least": 0, "most": 36_500})
    session_retention_days: int = field(default=7, metadata={"least": 0, "most": 36_500})


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, what the operator should be told about them, and where each one came from."""

    settings: Settings
    warnings: tuple[str, ...]
    sources: Mapping[str, Source]


def setting_names() -> tuple[str, ...]:
    """The names of all settings, as a file spells them."""
    return tuple(each.name for each in fields(Settings))


def load_settings(environ: Mapping[str, str], overrides: Mapping[str, object]) -> LoadedSettings:
    """Read the settings: defaults, then the file that JOBWHEEL_CONFIG names, the environment, the arguments.

    Args:
        environ: the process's environment.
        overrides: arguments of the command line by setting name; None means not given.

    Raises:
        SettingsError: a bad value, or a name in the file or the arguments that is no setting.
    """
    loader = _Loader()
    if environ.get(CONFIG_VARIABLE):
        loader.add_file(Path(environ[CONFIG_VARIABLE]))
    loader.add_environment(environ)
    loader.add_arguments(overrides)
    return loader.finish()


def make_data_dir(settings: Settings) -> None:
    """Make the data directory, readable by its owner alone, if it is not there.

    Raises:
        SettingsError: it cannot be made.
    """
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        problem = f"{str(settings.data_dir)!r} cannot be made a directory: {error.strerror}"
        raise SettingsError("data_dir", "JOBWHEEL_DATA_DIR", problem) from error


def refuse_weak_token(token: Secret, where: str, *, allowed: bool) -> str | None:
    """Refuse a token that everybody knows; if it is allowed, return the warning to give.

    Raises:
        SettingsError: the token is weak and not allowed.
    """
    if token.reveal().strip() not in WEAK_TOKENS:
        return None
    if allowed:
        return f"{where} is a token that everybody knows; set a random one and JOBWHEEL_ALLOW_WEAK_TOKEN=false"
    raise SettingsError(
        "access_token",
        where,
        "an empty token, default_token and 123456 are refused since everybody knows them: set a random text "
        "(or, while taking over an installation, JOBWHEEL_ALLOW_WEAK_TOKEN=true)",
    )


class _Loader:
    """Collects values from one source after the other; later ones win."""

    def __init__(self) -> None:
        self._fields = {each.name: each for each in fields(Settings)}
        self._values: dict[str, Any] = {}
        self._where: dict[str, str] = {}
        self._sources: dict[str, Source] = dict.fromkeys(self._fields, "default")
        self._warnings: list[str] = []

    def add_file(self, path: Path) -> None:
        try:
            content = tomllib.loads(path.read_text("utf-8"))
        except OSError as error:
            problem = f"the file {str(path)!r} cannot be read: {error.strerror}"
            raise SettingsError("config", CONFIG_VARIABLE, problem) from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsError("config", CONFIG_VARIABLE, f"{str(path)!r} is not TOML: {error}") from error
        for name, value in content.items():
            where = f"{name} in {path}"
            if name not in self._fields:
                raise SettingsError(name, where, f"is no setting; valid ones are {', '.join(self._fields)}")
            self._set(name, value, where, "file")

    def add_environment(self, environ: Mapping[str, str]) -> None:
        for variable in sorted(environ):
            if not variable.startswith(PREFIX) or variable == CONFIG_VARIABLE or variable.startswith(_NOT_OURS):
                continue
            name = variable.removeprefix(PREFIX).lower()
            value = environ[variable]
            if name in self._fields and variable == PREFIX + name.upper():
                self._set_from_environment(name, variable, value)
            elif not variable.startswith(_INJECTED_PREFIXES):
                self._warnings.append(f"{variable} is no setting and is ignored; `jobwheel admin --help` lists them")

    def _set_from_environment(self, name: str, variable: str, value: str) -> None:
        if name == "port" and value.startswith("tcp://"):
            self._warnings.append(f"{variable}={value} is an address that a cluster injects, not a port: ignored")
        elif value or name == "access_token":
            # An empty variable is one that was not filled in. An empty token, however, would open the door.
            self._set(name, value, variable, "environment")

    def add_arguments(self, overrides: Mapping[str, object]) -> None:
        for name, value in overrides.items():
            if name not in self._fields:
                raise SettingsError(name, name, f"is no setting; valid ones are {', '.join(self._fields)}")
            if value is not None:
                self._set(name, value, f"--{name.replace('_', '-')}", "argument")

    def _set(self, name: str, value: object, where: str, source: Source) -> None:
        try:
            self._values[name] = read_value(self._fields[name], value)
        except SettingValueError as error:
            raise SettingsError(name, where, str(error)) from error
        self._sources[name] = source
        self._where[name] = where

    def finish(self) -> LoadedSettings:
        self._check_token()
        self._check_tls()
        data_dir = Path(self._values.get("data_dir", self._fields["data_dir"].default)).absolute()
        self._values["data_dir"] = data_dir
        self._values.setdefault("database_url", f"sqlite:///{quote(str(data_dir / 'jobwheel.db'))}")
        return LoadedSettings(Settings(**self._values), tuple(self._warnings), self._sources)

    def _check_token(self) -> None:
        token = self._values.get("access_token")
        if token is None:
            return
        allowed = bool(self._values.get("allow_weak_token"))
        warning = refuse_weak_token(token, self._where["access_token"], allowed=allowed)
        if warning:
            self._warnings.append(warning)

    def _check_tls(self) -> None:
        for given, missing in (("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")):
            if self._values.get(given) and not self._values.get(missing):
                raise SettingsError(missing, PREFIX + missing.upper(), f"is needed too, since {given} is set")
        certificate, key, authorities = (self._values.get(each) for each in ("tls_certificate", "tls_key", "ca_file"))
        if certificate:
            chain = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            problem = f"{str(certificate)!r} is no certificate in PEM that belongs to tls_key"
            self._try_pem("tls_certificate", problem, lambda: chain.load_cert_chain(certificate, key))
        if authorities:
            problem = f"{str(authorities)!r} holds no certificates in PEM"
            self._try_pem("ca_file", problem, lambda: ssl.create_default_context(cafile=authorities))

    def _try_pem(self, name: str, problem: str, read: Callable[[], object]) -> None:
        """Before anything is started: what reads it later cannot say which setting it is."""
        try:
            read()
        except OSError as error:
            raise SettingsError(name, self._where[name], f"{problem} ({error.strerror or error})") from error
