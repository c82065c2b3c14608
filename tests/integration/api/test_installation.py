"""The first start of an empty database, and the next ones."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from jobwheel.admin.services.errors import InvalidFieldError, NotFoundError
from jobwheel.admin.services.installation import (
    Installation,
    host_zone,
    prepare_installation,
    read_access_token,
)
from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.sign_in import Client, SignIn
from jobwheel.admin.services.users import Users
from jobwheel.admin.settings import Settings, SettingsError
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.settings_table import ACCESS_TOKEN, write_setting
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.kernel.secret import Secret
from tests.support.admin_harness import open_admin_database

Prepare = Callable[..., Awaitable[Installation]]


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    made = Passwords()
    yield made
    made.close()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_admin_database(tmp_path, FakeClock()) as opened:
        yield opened


@pytest.fixture
def prepare(database: Database, passwords: Passwords) -> Prepare:
    async def call(host: str = "Asia/Shanghai", **changes: object) -> Installation:
        settings = replace(Settings(), **changes)  # type: ignore[arg-type]
        return await prepare_installation(database, FakeClock(), settings, passwords, host)

    return call


async def signs_in(database: Database, passwords: Passwords, password: Secret) -> bool:
    sign_in = SignIn(database, FakeClock(), passwords)
    return (await sign_in.sign_in("admin", password, Client("192.0.2.1"))).user.name == "admin"


async def test_the_first_start_makes_a_user_with_a_random_password(
    database: Database, passwords: Passwords, prepare: Prepare
) -> None:
    made = await prepare()
    assert made.first_password is not None
    assert len(made.first_password.reveal()) == 16
    assert await signs_in(database, passwords, made.first_password)
    assert (await prepare()).first_password is None


async def test_or_with_the_one_that_is_set(database: Database, passwords: Passwords, prepare: Prepare) -> None:
    made = await prepare(admin_password=Secret("set-by-operator"))
    assert made.first_password is None
    assert await signs_in(database, passwords, Secret("set-by-operator"))


async def test_two_first_starts_at_once_make_one_user_and_show_one_password(
    database: Database, passwords: Passwords, prepare: Prepare
) -> None:
    made = await asyncio.gather(prepare(), prepare())
    shown = [each.first_password for each in made if each.first_password is not None]
    assert len(shown) == 1
    assert await signs_in(database, passwords, shown[0])
    assert made[0].access_token == made[1].access_token


async def test_a_later_start_changes_no_password(database: Database, passwords: Passwords, prepare: Prepare) -> None:
    await prepare(admin_password=Secret("set-by-operator"))
    await prepare(admin_password=Secret("another-password"))
    assert await signs_in(database, passwords, Secret("set-by-operator"))


async def test_a_password_that_is_too_short_makes_nothing(database: Database, prepare: Prepare) -> None:
    with pytest.raises(InvalidFieldError, match="JOBWHEEL_ADMIN_PASSWORD"):
        await prepare(admin_password=Secret("short"))
    assert await database.read(read_access_token) is None


async def test_a_token_is_generated_once_and_kept(database: Database, prepare: Prepare) -> None:
    first, second = await prepare(), await prepare()
    assert len(first.access_token.reveal()) == 43
    assert first.access_token == second.access_token == await database.read(read_access_token)
    assert first.access_tokens.accepts(first.access_token.reveal())
    assert not first.access_tokens.accepts("wrong")
    assert not first.access_tokens.accepts(None)


async def test_a_token_that_is_set_stands_and_is_not_stored(database: Database, prepare: Prepare) -> None:
    made = await prepare(access_token=Secret("t-from-setting"))
    assert made.access_tokens.accepts("t-from-setting")
    assert await database.read(read_access_token) is None


@pytest.mark.parametrize("weak", ["default_token", "123456", "", " "])
async def test_a_stored_token_that_everybody_knows_is_refused(database: Database, prepare: Prepare, weak: str) -> None:
    await database.write(write_setting, ACCESS_TOKEN, weak)
    with pytest.raises(SettingsError, match="everybody knows"):
        await prepare()
    made = await prepare(allow_weak_token=True)
    assert "everybody knows" in made.warnings[0]


@pytest.mark.parametrize(
    ("setting", "host", "zone"), [(None, "Asia/Shanghai", "Asia/Shanghai"), ("Europe/Berlin", "UTC", "Europe/Berlin")]
)
async def test_the_zone_is_that_of_the_first_start_for_ever(
    prepare: Prepare, setting: str | None, host: str, zone: str
) -> None:
    assert (await prepare(host, timezone=setting)).zone.name == zone
    again = await prepare("America/New_York")
    assert (again.zone.name, again.warnings) == (zone, ())


async def test_another_zone_later_is_a_warning(prepare: Prepare) -> None:
    await prepare(timezone="Europe/Berlin")
    again = await prepare(timezone="Asia/Tokyo")
    assert again.zone.name == "Europe/Berlin"
    assert "JOBWHEEL_TIMEZONE=Asia/Tokyo is ignored" in again.warnings[0]


async def test_the_operator_cannot_set_the_password_of_nobody(database: Database, passwords: Passwords) -> None:
    with pytest.raises(NotFoundError, match="nobody"):
        await Users(database, FakeClock(), passwords).set_password("nobody", Secret("long-enough"))


class TestHostZone:
    @pytest.mark.parametrize(
        ("variable", "zone"),
        [("Europe/Paris", "Europe/Paris"), (":Europe/Paris", "Europe/Paris"), ("CEST-2", "UTC"), ("", "UTC")],
    )
    def test_from_the_environment(self, tmp_path: Path, variable: str, zone: str) -> None:
        assert host_zone({"TZ": variable}, tmp_path) == zone

    def test_from_the_link(self, tmp_path: Path) -> None:
        (tmp_path / "localtime").symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
        assert host_zone({}, tmp_path) == "Asia/Tokyo"

    def test_from_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "timezone").write_text("America/Lima\n")
        assert host_zone({}, tmp_path) == "America/Lima"

    def test_from_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "timezone").write_text("Mars/Olympus\n")
        assert host_zone({}, tmp_path) == "UTC"
