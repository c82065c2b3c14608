import json
import secrets
import stat
from pathlib import Path

import pytest

from jobwheel.cli.errors import SessionFileError
from jobwheel.cli.session_file import SessionFile, StoredSession, session_path
from jobwheel.kernel.secret import Secret

HERE, THERE = "http://127.0.0.1:8080", "https://jobs.example"


def _session(url: str) -> StoredSession:
    return StoredSession(url, "admin", Secret(secrets.token_urlsafe(8)), "2026-11-28T12:00:00.000Z")


@pytest.fixture
def file(tmp_path: Path) -> SessionFile:
    return SessionFile(tmp_path / "config" / "session.json")


def test_gives_back_what_it_keeps(file: SessionFile) -> None:
    session = _session(HERE)
    file.keep(session)
    assert file.find(HERE) == session
    assert file.current == HERE


def test_a_session_is_found_under_its_own_admin_alone(file: SessionFile) -> None:
    file.keep(_session(HERE))
    assert file.find(THERE) is None
    file.keep(_session(THERE))
    assert file.find(HERE) is not None
    assert file.current == THERE


def test_forgets_one_admin_and_keeps_the_other(file: SessionFile) -> None:
    file.keep(_session(HERE))
    file.keep(_session(THERE))
    file.forget(THERE)
    assert file.find(THERE) is None
    assert file.find(HERE) is not None


def test_only_its_owner_can_read_it(file: SessionFile) -> None:
    file.keep(_session(HERE))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.path.parent.stat().st_mode) == 0o700
    assert [path.name for path in file.path.parent.iterdir()] == ["session.json"]


def test_a_file_that_was_open_to_others_is_closed_at_the_next_login(file: SessionFile) -> None:
    file.keep(_session(HERE))
    file.path.chmod(0o644)
    file.keep(_session(THERE))
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["{", "[1]", json.dumps({"sessions": {HERE: {"token": 1}}}), "\x00\xff"])
def test_a_broken_file_is_named(file: SessionFile, content: str) -> None:
    file.path.parent.mkdir()
    file.path.write_bytes(content.encode("latin-1"))
    with pytest.raises(SessionFileError) as raised:
        file.find(HERE)
    assert str(file.path) in raised.value.message


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file = SessionFile(tmp_path / "file" / "session.json")
    with pytest.raises(SessionFileError, match=r"session\.json"):
        file.keep(_session(HERE))


def test_stands_in_the_configuration_folder() -> None:
    assert session_path({"XDG_CONFIG_HOME": "/c", "HOME": "/h"}) == Path("/c/jobwheel/session.json")
    assert session_path({"HOME": "/h"}) == Path("/h/.config/jobwheel/session.json")
    # The specification of these variables ignores relative ones.
    assert session_path({"XDG_CONFIG_HOME": "c", "HOME": "/h"}) == Path("/h/.config/jobwheel/session.json")
