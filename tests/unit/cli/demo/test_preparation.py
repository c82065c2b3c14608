from pathlib import Path

import pytest

from jobwheel.admin.services.passwords import Passwords
from jobwheel.admin.services.sign_in import SignIn
from jobwheel.admin.services.users import Users
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.errors import DatabaseInUseError
from jobwheel.cli.demo.places import Places, choose_places
from jobwheel.cli.demo.preparation import new_session, prepare
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.secret import Secret

CLOCK = SystemClock()


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return choose_places(0, tmp_path / "data", {})


async def _whose(places: Places, session: Secret) -> str | None:
    database = open_database(places.settings.database_url, CLOCK)
    passwords = Passwords()
    await database.start()
    try:
        found = await SignIn(database, CLOCK, passwords).find(session.reveal())
    finally:
        passwords.close()
        await database.stop()
    return None if found is None else found.user.name


async def test_a_new_installation_has_a_password_to_show_and_the_next_start_has_none(places: Places) -> None:
    first = await prepare(places, CLOCK)
    second = await prepare(places, CLOCK)
    assert first.first_password is not None
    assert second.first_password is None
    assert second.access_token == first.access_token
    assert await _whose(places, first.session) == await _whose(places, second.session) == "admin"


async def test_what_earlier_demos_noted_is_gone(places: Places) -> None:
    await prepare(places, CLOCK)
    places.executions.write_text("7\n")
    await prepare(places, CLOCK)
    assert places.executions.read_text() == ""


async def test_a_session_that_is_over_is_followed_by_another(places: Places) -> None:
    prepared = await prepare(places, CLOCK)
    database = open_database(places.settings.database_url, CLOCK)
    passwords = Passwords()
    await database.start()
    try:
        await Users(database, CLOCK, passwords).set_password("admin", Secret("another-one-of-tests"))
        # Beside an admin that has the database.
        fresh = await new_session(places, CLOCK)
    finally:
        passwords.close()
        await database.stop()
    assert await _whose(places, prepared.session) is None
    assert await _whose(places, fresh) == "admin"


async def test_a_database_in_use_is_left_alone(places: Places) -> None:
    database = open_database(places.settings.database_url, CLOCK)
    await database.start()
    try:
        with pytest.raises(DatabaseInUseError):
            await prepare(places, CLOCK)
    finally:
        await database.stop()
    assert not places.folder.exists()
