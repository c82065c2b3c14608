import asyncio
import dataclasses
import secrets
from pathlib import Path

import pytest

from jobwheel.admin.build import build_admin
from jobwheel.admin.settings import Settings, load_settings
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.schema import newest_version
from jobwheel.kernel.clock import SystemClock
from tests.integration.cli.conftest import Call
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("JOBWHEEL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("JOBWHEEL_ACCESS_TOKEN", raising=False)
    return load_settings({"JOBWHEEL_DATA_DIR": str(tmp_path / "data")}, {}).settings


@pytest.fixture
def made(settings: Settings) -> Settings:
    """An installation that has been started once."""

    async def make() -> None:
        admin = await build_admin(settings, SystemClock())
        await admin.database.stop()

    asyncio.run(make())
    return settings


def test_upgrade_makes_the_database_and_then_has_nothing_to_do(call: Call, settings: Settings) -> None:
    first = call("db", "upgrade")
    assert (first.code, first.out) == (0, f"upgraded the schema from nothing to {newest_version()}\n")
    assert call("db", "current").out == f"{newest_version()}\n"
    second = call("db", "upgrade")
    assert (second.code, second.out) == (0, f"the schema is {newest_version()} already, nothing to do\n")


@pytest.mark.parametrize("command", [("db", "current"), ("token", "show"), ("users", "password", "admin", "--stdin")])
def test_without_a_database_nothing_is_made(call: Call, settings: Settings, command: tuple[str, ...]) -> None:
    answer = call(*command, stdin="a-new-password\n")
    assert answer.code == 1
    assert f"there is no database at {settings.data_dir / 'jobwheel.db'}" in answer.err
    assert not settings.data_dir.exists()


def test_upgrade_waits_for_nobody_while_an_admin_runs(call: Call, settings: Settings) -> None:
    async def with_admin() -> None:
        database = open_database(settings.database_url, SystemClock())
        await database.start()
        try:
            answer = await asyncio.to_thread(call, "db", "upgrade")
        finally:
            await database.stop()
        assert answer.code == 1
        assert "is in use by another admin" in answer.err

    asyncio.run(with_admin())


def test_shows_the_generated_token(call: Call, made: Settings) -> None:
    shown = call("token", "show")
    assert shown.code == 0
    assert len(shown.out.strip()) >= 32
    assert call("token", "show", "--data-dir", made.data_dir).out == shown.out


def test_shows_the_token_that_the_setting_gives(call: Call, made: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    token = secrets.token_urlsafe(24)
    monkeypatch.setenv("JOBWHEEL_ACCESS_TOKEN", token)
    assert call("token", "show").out == f"{token}\n"


def test_a_schema_without_an_installation_has_no_token(call: Call, settings: Settings) -> None:
    call("db", "upgrade")
    answer = call("token", "show")
    assert answer.code == 1
    assert "holds no token" in answer.err


@pytest.mark.parametrize(
    ("name", "password", "words"),
    [("nobody", "a-new-password", "there is no user 'nobody'"), ("admin", "short", "password: has 5 characters")],
)
def test_a_password_that_cannot_be_set(call: Call, made: Settings, name: str, password: str, words: str) -> None:
    answer = call("users", "password", name, "--stdin", stdin=f"{password}\n")
    assert answer.code == 1
    assert words in answer.err
    assert password not in answer.err


def test_another_databases_url_is_refused(call: Call, settings: Settings) -> None:
    answer = call("db", "current", "--database-url", "oracle://x/y")
    assert answer.code == 1
    assert "JOBWHEEL_DATABASE_URL" in answer.err


def test_a_file_that_is_no_database_is_named(call: Call, settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "letters.db"
    file.write_text("these are letters, and more of them than a page header is long. " * 20)
    answer = call("db", "current", "--database-url", f"sqlite:///{file}")
    assert answer.code == 1
    assert str(file) in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_the_same_on_a_server(call: Call, settings: Settings, kind: str, servers: Servers) -> None:
    url = servers.make_database(kind, "jobwheel_commands")
    on_it = ("--database-url", url)
    first = call("db", "upgrade", *on_it)
    assert (first.code, first.out) == (0, f"upgraded the schema from nothing to {newest_version()}\n"), first.err
    assert call("db", "current", *on_it).out == f"{newest_version()}\n"
    assert "nothing to do" in call("db", "upgrade", *on_it).out
    missing = call("token", "show", *on_it)
    assert missing.code == 1
    password = servers.running[kind].password
    wrong = call("db", "current", "--database-url", url.replace(password, "entirely-wrong"))
    assert wrong.code == 1
    assert "the password of 'wheel' is wrong" in wrong.err
    assert (password in missing.err, "entirely-wrong" in wrong.err) == (False, False)
    assert wrong.err.count("\n") == 1


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_an_installation_on_a_server(call: Call, settings: Settings, kind: str, servers: Servers) -> None:
    url = servers.make_database(kind, "jobwheel_commands")

    async def make() -> str:
        admin = await build_admin(dataclasses.replace(settings, database_url=url), SystemClock())
        await admin.database.stop()
        return admin.installation.access_token.reveal()

    tokens = [asyncio.run(make()) for _ in range(2)]
    assert tokens == [call("token", "show", "--database-url", url).out.strip()] * 2
