from pathlib import Path

import pytest

from jobwheel import Executor
from jobwheel.executor.errors import SettingError, UnknownSettingError
from jobwheel.executor.settings import resolve

CONTENT = """
app_name = "shop"
admin = ["http://a:8080/", "http://b:8080"]
access_token = "Rw52-made-up"
port = 7001
heartbeat_s = 12.5
queue_limit = 9
enabled = false
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "executor.toml"
    path.write_text(CONTENT)
    return path


def test_a_file_gives_what_nothing_else_does(file: Path) -> None:
    settings = resolve({"config": file}, {})
    assert (settings.app_name, settings.admins) == ("shop", ("http://a:8080", "http://b:8080"))
    assert [token.reveal() for token in settings.access_tokens] == ["Rw52-made-up"]
    assert (settings.port, settings.heartbeat_s, settings.enabled) == (7001, 12.5, False)


def test_networks_may_stand_in_a_list(file: Path) -> None:
    file.write_text('host = "0.0.0.0"\naccess_token = "Rw52-made-up"\nnetwork = ["eth1", "10.0.0.0/8"]\n')
    assert resolve({"config": file}, {}).network == ("eth1", "10.0.0.0/8")


@pytest.mark.parametrize("networks", ["[]", "[5]", "7", '["eth1", ""]'])
def test_what_is_no_list_of_networks_is_refused(file: Path, networks: str) -> None:
    file.write_text(f'host = "0.0.0.0"\naccess_token = "Rw52-made-up"\nnetwork = {networks}\n')
    with pytest.raises(SettingError, match="network in "):
        resolve({"config": file}, {})


def test_arguments_go_before_the_environment_this_before_the_file_and_this_before_the_defaults(file: Path) -> None:
    environ = {
        "JOBWHEEL_EXECUTOR_CONFIG": str(file),
        "JOBWHEEL_EXECUTOR_PORT": "7002",
        "JOBWHEEL_EXECUTOR_QUEUE_LIMIT": "8",
    }
    settings = resolve({"port": 7003}, environ)
    assert (settings.port, settings.queue_limit, settings.heartbeat_s, settings.timeout_s) == (7003, 8, 12.5, 3.0)


def test_the_argument_names_the_file_before_the_environment_does(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("port = 7009\n")
    settings = resolve({"config": str(other)}, {"JOBWHEEL_EXECUTOR_CONFIG": str(file)})
    assert (settings.port, settings.app_name) == (7009, "")


def test_an_executor_reads_the_file_that_it_is_given(file: Path) -> None:
    assert Executor(config=file, queue_limit=3).settings.port == 7001


def test_an_unknown_name_in_the_file_is_named_with_the_valid_ones_and_without_its_value(file: Path) -> None:
    file.write_text('access_tokens = "Vq7-made-up"\n')
    with pytest.raises(
        UnknownSettingError, match=r"executor\.toml: 'access_tokens' is no setting; .*access_token"
    ) as caught:
        resolve({"config": file}, {})
    assert caught.value.field == "access_tokens"
    assert "Vq7" not in str(caught.value)


def test_a_file_names_no_further_file(file: Path) -> None:
    file.write_text('config = "other.toml"\n')
    with pytest.raises(UnknownSettingError, match="'config' is no setting"):
        resolve({"config": file}, {})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("port = true", r"setting port in .*executor\.toml is True, but must be a whole number"),
        ("port = 70000", r"setting port in .* is 70000, but must be a whole number from"),
        ("app_name = 7", r"setting app_name in .* is 7, but must be a text"),
        ("[admin]\nurl = 'http://a'", r"setting admin in .* must be an address or a list of addresses"),
        ('enabled = "perhaps"', r"setting enabled in .* must be true or false"),
        ("heartbeat_s = nan", r"setting heartbeat_s in .* must be a number of seconds"),
    ],
)
def test_a_bad_value_is_named_with_the_file_and_what_is_valid(file: Path, line: str, message: str) -> None:
    file.write_text(f"{line}\n")
    with pytest.raises(SettingError, match=message):
        resolve({"config": file}, {})


def test_a_bad_token_of_the_file_is_not_printed(file: Path) -> None:
    file.write_text('access_token = "se cret"\n')
    with pytest.raises(SettingError) as caught:
        resolve({"config": file}, {})
    assert "cret" not in str(caught.value)


@pytest.mark.parametrize("source", ["argument", "environment"])
def test_a_file_that_is_not_there_is_named_with_what_named_it(tmp_path: Path, source: str) -> None:
    absent = tmp_path / "absent.toml"
    if source == "argument":
        arguments, environ, setting = {"config": absent}, {}, "config"
    else:
        arguments, environ, setting = {}, {"JOBWHEEL_EXECUTOR_CONFIG": str(absent)}, "JOBWHEEL_EXECUTOR_CONFIG"
    with pytest.raises(SettingError, match=f"setting {setting} is '.*absent.toml'.*No such file"):
        resolve(arguments, environ)


@pytest.mark.parametrize("content", [b"port: 7", b"\xff\xfe"])
def test_a_file_that_is_no_toml_is_named(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(SettingError, match=r"executor\.toml', but must be a TOML file"):
        resolve({"config": file}, {})


@pytest.mark.parametrize("value", [7, b"x", ["a.toml"]])
def test_what_is_no_path_is_refused(value: object) -> None:
    with pytest.raises(SettingError, match=r"setting config is .* the path of a TOML file"):
        resolve({"config": value}, {})
