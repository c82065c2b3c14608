import secrets
import socket
from pathlib import Path

import pytest

from jobwheel.admin.server import CannotListenError
from jobwheel.admin.settings import SettingsError
from jobwheel.cli.demo.places import choose_places
from jobwheel.kernel.secret import Secret


def test_a_demo_never_works_on_the_database_of_a_real_admin(tmp_path: Path) -> None:
    environ = {
        "JOBWHEEL_DATABASE_URL": "sqlite:////var/lib/real.db",
        "JOBWHEEL_CONFIG": str(tmp_path / "absent.toml"),
        "JOBWHEEL_HOST": "0.0.0.0",
        "JOBWHEEL_EXECUTOR_ADDRESS": "http://elsewhere:1",
        "PATH": "/bin",
    }
    places = choose_places(0, tmp_path, environ)
    token = Secret(secrets.token_urlsafe(8))
    assert places.settings.database_url == f"sqlite:///{tmp_path}/jobwheel.db"
    for child in (places.admin_environ(), places.executor_environ(token)):
        assert child["PATH"] == "/bin"
        assert not {"JOBWHEEL_DATABASE_URL", "JOBWHEEL_CONFIG", "JOBWHEEL_HOST", "JOBWHEEL_EXECUTOR_ADDRESS"} & {*child}


def test_the_executor_gets_what_it_needs_and_no_password(tmp_path: Path) -> None:
    environ = {"JOBWHEEL_ADMIN_PASSWORD": secrets.token_urlsafe(8), "JOBWHEEL_PORT": "0"}
    places = choose_places(None, tmp_path, environ)
    token = Secret(secrets.token_urlsafe(8))
    child = places.executor_environ(token)
    assert child["JOBWHEEL_EXECUTOR_ADMIN"] == places.url
    assert child["JOBWHEEL_EXECUTOR_ACCESS_TOKEN"] == token.reveal()
    assert "JOBWHEEL_ADMIN_PASSWORD" not in child
    assert "JOBWHEEL_ADMIN_PASSWORD" in places.admin_environ()


def test_any_free_port_is_chosen_once_for_all_starts_of_the_admin(tmp_path: Path) -> None:
    places = choose_places(0, tmp_path, {})
    assert places.settings.port > 0
    assert places.admin_environ()["JOBWHEEL_PORT"] == str(places.settings.port)


def test_a_port_that_is_taken_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListenError, match=str(port)):
            choose_places(port, tmp_path / "data", {})
    assert not (tmp_path / "data").exists()


def test_arguments_go_before_the_environment(tmp_path: Path) -> None:
    environ = {"JOBWHEEL_DATA_DIR": str(tmp_path / "other"), "JOBWHEEL_PORT": "70000"}
    with pytest.raises(SettingsError, match="JOBWHEEL_PORT"):
        choose_places(None, tmp_path, environ)
    environ["JOBWHEEL_PORT"] = "0"
    assert choose_places(0, tmp_path, environ).settings.data_dir == tmp_path
    assert choose_places(0, None, environ).settings.data_dir == tmp_path / "other"
