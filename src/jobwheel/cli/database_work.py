"""What the commands on the database do."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jobwheel.admin.services.hand_back import HandBack, HandBackReport
from jobwheel.admin.services.installation import read_access_token
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.users import Users
from jobwheel.admin.settings import Settings, load_settings
from jobwheel.admin.store import schema
from jobwheel.admin.store.database import Database, missing_file, open_database
from jobwheel.admin.store.hand_back import OpenRuns
from jobwheel.cli.errors import NoDatabaseError, NoTokenError
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.secret import Secret

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Upgraded:
    """The version before (None = there was no schema) and after."""

    before: str | None
    after: str


def settings_of(data_dir: Path | None, database_url: str | None) -> Settings:
    """The admin's settings, of which these commands need where the database is.

    Raises:
        SettingsError: one of them cannot be used.
    """
    return load_settings(os.environ, {"data_dir": data_dir, "database_url": database_url}).settings


def check_database(settings: Settings) -> None:
    """See that the database is there and fits this program.

    Raises:
        NoDatabaseError: it is not there.
        SchemaVersionError: it does not fit.
    """
    _on_database(settings, _nothing)


def upgrade(settings: Settings) -> Upgraded:
    """Bring the schema to the newest version.

    Raises:
        DatabaseInUseError: there is something to do, and an admin runs on the database.
        SchemaVersionError: the database is newer than this program, or somebody else's.
    """
    return asyncio.run(_upgrade(settings))


def current(settings: Settings) -> tuple[str | None, str]:
    """The version that the database has, and the one that this program needs.

    Raises:
        NoDatabaseError: there is no database.
    """
    _must_exist(settings)
    return asyncio.run(_current(settings)), schema.newest_version()


def access_token(settings: Settings) -> Secret:
    """The token in force.

    Raises:
        NoTokenError: neither the setting nor the database has one.
    """
    if settings.access_token is not None:
        return settings.access_token
    token = _on_database(settings, lambda database: database.read(read_access_token))
    if token is None:
        raise NoTokenError(open_database(settings.database_url, SystemClock()).where)
    return token


def set_password(settings: Settings, name: str, password: Secret) -> None:
    """Give a user a new password and end his sessions.

    Raises:
        NotFoundError: there is no such user.
        InvalidFieldError: the password is too short or too long.
    """

    async def change(database: Database) -> None:
        passwords = Passwords()
        try:
            await Users(database, SystemClock(), passwords).set_password(name, password)
        finally:
            passwords.close()

    _on_database(settings, change)


def hand_back_report(settings: Settings) -> HandBackReport:
    """What stands against handing the database back to an admin of XXL-JOB.

    Raises:
        NoDatabaseError, SchemaVersionError: as for `check_database`.
    """
    return _on_database(settings, lambda database: HandBack(database, SystemClock()).report())


def hand_back(settings: Settings, *, accept_losses: bool) -> OpenRuns:
    """Hand the database back; tells of how many runs it let go.

    Raises:
        HandBackRefusedError: something stands against it.
    """

    def work(database: Database) -> Awaitable[OpenRuns]:
        return HandBack(database, SystemClock()).carry_out(accept_losses=accept_losses)

    return _on_database(settings, work)


async def _upgrade(settings: Settings) -> Upgraded:
    before = await _current(settings) if missing_file(settings.database_url) is None else None
    newest = schema.newest_version()
    if before == newest:
        return Upgraded(before, newest)
    # An admin of another version must not run while its tables change.
    database = open_database(settings.database_url, SystemClock())
    await database.start()
    try:
        await database.write_patiently(schema.upgrade, database.where)
    finally:
        await database.stop()
    return Upgraded(before, newest)


async def _current(settings: Settings) -> str | None:
    database = open_database(settings.database_url, SystemClock(), exclusive=False)
    await database.start()
    try:
        return await database.read(schema.current_version)
    finally:
        await database.stop()


def _on_database(settings: Settings, work: Callable[[Database], Awaitable[Answer]]) -> Answer:
    _must_exist(settings)

    async def run() -> Answer:
        database = open_database(settings.database_url, SystemClock(), exclusive=False)
        await database.start()
        try:
            await _check_schema(database)
            return await work(database)
        finally:
            await database.stop()

    return asyncio.run(run())


async def _check_schema(database: Database) -> None:
    version = await database.read(schema.current_version)
    if version is None:
        raise NoDatabaseError(database.where)
    if version != schema.newest_version():
        # It refuses, and says why.
        await database.write_patiently(schema.prepare, database.where)


def _must_exist(settings: Settings) -> None:
    path = missing_file(settings.database_url)
    if path is not None:
        raise NoDatabaseError(str(path))


async def _nothing(_: Database) -> None:
    pass
