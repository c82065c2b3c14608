"""What an installation is born with: its zone, its first user, its token."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobwheel.admin.domain.event import SYSTEM, EventKind, NewEvent
from jobwheel.admin.domain.user import Role
from jobwheel.admin.services.passwords import Passwords, check_new_password
from jobwheel.admin.settings import Settings, refuse_weak_token
from jobwheel.admin.store import Connection, claims
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.events import insert_event
from jobwheel.admin.store.settings_table import ACCESS_TOKEN, ZONE, read_setting, write_setting
from jobwheel.admin.store.users import count_users, insert_user
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.secret import Secret
from jobwheel.schedule import ScheduleError, load_zone
from jobwheel.wire.tokens import AccessTokens

FIRST_USER = "admin"
_TOKEN_WHERE = "the installation's access token in the database"  # noqa: S105 - words for a message


@dataclass(frozen=True, slots=True)
class Installation:
    """What every part of the admin needs to know of its installation.

    Attributes:
        zone: the zone of the wall times in the database.
        access_tokens: what executors must carry.
        access_token: the one that the admin sends.
        first_password: of the user `admin`, if it was made just now and is random: print it once.
        warnings: what the operator should be told.
    """

    zone: InstallationZone
    access_tokens: AccessTokens
    access_token: Secret
    first_password: Secret | None
    warnings: tuple[str, ...] = ()


async def prepare_installation(
    database: Database, clock: Clock, settings: Settings, passwords: Passwords, host_zone: str
) -> Installation:
    """Give an empty database what it must have, and read what it has.

    Raises:
        SettingsError: the token is one that everybody knows.
        InvalidFieldError: JOBWHEEL_ADMIN_PASSWORD is too short or too long.
    """
    first_password = None
    password_hash = None
    if not await database.read(count_users):
        if settings.admin_password is None:
            first_password = Secret(secrets.token_urlsafe(12))
        else:
            check_new_password("JOBWHEEL_ADMIN_PASSWORD", settings.admin_password)
        password_hash = await passwords.hash(settings.admin_password or first_password or Secret(""))
    birth = _Birth(settings, host_zone, password_hash, clock.now())
    zone, token, made_user = await database.write(birth.write)
    shown = first_password if made_user else None
    return Installation(zone, AccessTokens([token]), token, shown, _warnings(settings, zone, token))


def read_access_token(connection: Connection) -> Secret | None:
    """The generated installation token, for `jobwheel token show`; None if the setting has always given it."""
    stored = read_setting(connection, ACCESS_TOKEN)
    return None if stored is None else Secret(stored)


def host_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """The IANA name of the host's time zone, as far as it can be found out; else UTC."""
    candidates = [environ.get("TZ", "").removeprefix(":")]
    localtime = etc / "localtime"
    if localtime.is_symlink():
        candidates.append(str(localtime.readlink()).partition("zoneinfo/")[2])
    timezone = etc / "timezone"
    if timezone.is_file():
        candidates.append(timezone.read_text("utf-8", errors="replace").strip())
    return next((name for name in candidates if _is_zone(name)), "UTC")


@dataclass(frozen=True, slots=True)
class _Birth:
    """The one transaction that fills in what is missing."""

    settings: Settings
    host_zone: str
    password_hash: str | None
    now_ms: int

    def write(self, connection: Connection) -> tuple[InstallationZone, Secret, bool]:
        # Of several nodes that start at once on an empty database, one fills it in.
        claims.wait_for_schedule(connection)
        token = self._token(connection)
        return self._zone(connection), token, self._made_user(connection)

    def _made_user(self, connection: Connection) -> bool:
        # Another node may have been faster since the users were counted.
        if self.password_hash is None or count_users(connection):
            return False
        insert_user(connection, FIRST_USER, Role.ADMIN, self.password_hash)
        details = {"user": FIRST_USER, "role": Role.ADMIN.value}
        insert_event(connection, NewEvent(EventKind.USER_CREATED, self.now_ms, SYSTEM, details=details))
        return True

    def _zone(self, connection: Connection) -> InstallationZone:
        stored = read_setting(connection, ZONE)
        if stored is None:
            stored = self.settings.timezone or self.host_zone
            write_setting(connection, ZONE, stored)
        return InstallationZone(stored)

    def _token(self, connection: Connection) -> Secret:
        if self.settings.access_token is not None:
            return self.settings.access_token
        stored = read_setting(connection, ACCESS_TOKEN)
        if stored is None:
            stored = secrets.token_urlsafe(32)
            write_setting(connection, ACCESS_TOKEN, stored)
        refuse_weak_token(Secret(stored), _TOKEN_WHERE, allowed=self.settings.allow_weak_token)
        return Secret(stored)


def _warnings(settings: Settings, zone: InstallationZone, token: Secret) -> tuple[str, ...]:
    warnings = []
    if settings.timezone is not None and settings.timezone != zone.name:
        warnings.append(
            f"JOBWHEEL_TIMEZONE={settings.timezone} is ignored: the installation was made with {zone.name}, which its "
            "stored times are in"
        )
    if settings.access_token is None:
        warning = refuse_weak_token(token, _TOKEN_WHERE, allowed=True)
        warnings += [warning] if warning else []
    return tuple(warnings)


def _is_zone(name: str) -> bool:
    try:
        load_zone(name)
    except ScheduleError:
        return False
    return True
