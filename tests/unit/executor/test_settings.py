import logging
from pathlib import Path

import pytest

from jobwheel.executor.errors import SettingError, UnknownSettingError
from jobwheel.executor.settings import ExecutorSettings, is_loopback, resolve
from jobwheel.wire.messages import Dialect


def test_defaults() -> None:
    settings = resolve({}, {})
    assert settings == ExecutorSettings(log_path=Path(".jobwheel/executor/unnamed"))
    assert (settings.host, settings.port, settings.heartbeat_s, settings.queue_limit) == ("127.0.0.1", 9999, 30, 1000)
    assert not settings.registers


def test_an_argument_goes_before_the_environment_and_this_before_the_default() -> None:
    environ = {"JOBWHEEL_EXECUTOR_PORT": "7001", "JOBWHEEL_EXECUTOR_QUEUE_LIMIT": "5"}
    settings = resolve({"port": 7002}, environ)
    assert (settings.port, settings.queue_limit, settings.timeout_s) == (7002, 5, 3.0)


def test_the_log_path_is_named_after_the_app() -> None:
    assert resolve({"app_name": "demo"}, {}).log_path == Path(".jobwheel/executor/demo")
    assert resolve({"app_name": "demo", "log_path": "/var/log/x"}, {}).log_path == Path("/var/log/x")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://127.0.0.1:8080", ("http://127.0.0.1:8080",)),
        ("http://127.0.0.1:8080/", ("http://127.0.0.1:8080",)),
        ("http://a/xxl-job-admin//", ("http://a/xxl-job-admin",)),
        ("http://a//xxl-job-admin", ("http://a/xxl-job-admin",)),
        (" http://a , https://b:1/x/ ,", ("http://a", "https://b:1/x")),
        (["http://a", "http://a/"], ("http://a",)),
        (["http://[::1]:8080/"], ("http://[::1]:8080",)),
        ("", ()),
        ([], ()),
    ],
)
def test_admin_addresses_are_normalised(given: object, expected: tuple[str, ...]) -> None:
    assert resolve({"admin": given}, {}).admins == expected


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("admin", "127.0.0.1:8080"),
        ("admin", "ftp://a"),
        ("admin", "http://"),
        ("admin", "http://user:pw@a"),
        ("admin", "http://a?x=1"),
        ("admin", "http://a:99999"),
        ("admin", "http://[::1"),
        ("admin", 7),
        ("admin", [7]),
        ("app_name", "a b"),
        ("app_name", "../up"),
        ("app_name", ".."),
        ("app_name", 7),
        ("port", "many"),
        ("port", 65536),
        ("port", True),
        ("port", 1.5),
        ("heartbeat_s", "soon"),
        ("heartbeat_s", 0),
        ("heartbeat_s", "nan"),
        ("timeout_s", None.__class__),
        ("queue_limit", 0),
        ("dialect", "D"),
        ("enabled", "perhaps"),
        ("host", ""),
        ("host", "http://x"),
        ("ip", "10.0.0.7/8"),
        ("access_token", 5),
        ("access_token", ["a", 5]),
        ("access_token", "a\nb"),
        ("address", "10.0.0.7:9999"),
        ("log_path", ""),
    ],
)
def test_a_bad_value_is_named_with_what_is_valid(setting: str, value: object) -> None:
    with pytest.raises(SettingError, match=f"setting {setting} is .*must be ") as caught:
        resolve({setting: value}, {})
    assert caught.value.field == setting


def test_an_unknown_argument_is_named() -> None:
    with pytest.raises(
        UnknownSettingError, match=r"Executor\(…\): 'queue_limits' is no setting; .*queue_limit,"
    ) as caught:
        resolve({"queue_limits": 5}, {})
    assert caught.value.field == "queue_limits"


def test_the_value_of_an_unknown_name_is_not_shown_since_it_may_be_a_token() -> None:
    with pytest.raises(UnknownSettingError) as caught:
        resolve({"access_tokens": "Vq7-made-up"}, {})
    assert "Vq7" not in str(caught.value)


def test_a_bad_value_of_the_environment_is_named_by_its_variable() -> None:
    with pytest.raises(SettingError, match="JOBWHEEL_EXECUTOR_QUEUE_LIMIT is 'x', but must be a whole number"):
        resolve({}, {"JOBWHEEL_EXECUTOR_QUEUE_LIMIT": "x"})


def test_an_empty_variable_counts_as_not_set() -> None:
    assert resolve({}, {"JOBWHEEL_EXECUTOR_PORT": " "}).port == 9999


def test_a_port_that_a_cluster_injected_is_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings = resolve({}, {"JOBWHEEL_EXECUTOR_PORT": "tcp://10.0.0.1:80"})
    assert settings.port == 9999
    assert "JOBWHEEL_EXECUTOR_PORT" in caplog.text


def test_an_unknown_variable_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        resolve({}, {"JOBWHEEL_EXECUTOR_QUEUE_LIMITS": "5", "JOBWHEEL_EXECUTOR_X": "1", "JOBWHEEL_PORT": "1"})
    assert [record.getMessage() for record in caplog.records] == [
        "executor.settings_unknown names=JOBWHEEL_EXECUTOR_QUEUE_LIMITS,JOBWHEEL_EXECUTOR_X"
    ]


def test_tokens_are_one_or_several_and_never_printed() -> None:
    assert [token.reveal() for token in resolve({"access_token": "new-Tz81,old-Qm42"}, {}).access_tokens] == [
        "new-Tz81",
        "old-Qm42",
    ]
    settings = resolve({"access_token": ["new-Tz81", ""]}, {})
    assert [token.reveal() for token in settings.access_tokens] == ["new-Tz81"]
    assert "Tz81" not in repr(settings)


def test_a_bad_token_is_not_printed() -> None:
    with pytest.raises(SettingError) as caught:
        resolve({"access_token": "se cret"}, {})
    assert "cret" not in str(caught.value)


def test_a_well_known_token_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        resolve({"access_token": "default_token"}, {})
    assert "executor.weak_token" in caplog.text


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.7", "::", "example.org"])
def test_without_a_token_only_loopback_is_served(host: str) -> None:
    with pytest.raises(SettingError, match="access_token"):
        resolve({"host": host}, {})
    assert resolve({"host": host, "access_token": "Kx93-made-up"}, {}).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(resolve({"host": host}, {}).host)


def test_without_a_server_of_its_own_the_address_must_be_told() -> None:
    arguments = {"app_name": "demo", "admin": "http://a", "embedded_server": False}
    with pytest.raises(SettingError, match="address"):
        resolve(arguments, {})
    assert resolve({**arguments, "address": "http://127.0.0.1/jobs/"}, {}).address == "http://127.0.0.1/jobs/"


def test_an_application_that_others_reach_needs_a_token() -> None:
    arguments = {"embedded_server": False, "address": "http://b/jobs/"}
    with pytest.raises(
        SettingError, match="setting access_token is '', but must be set when the application listens at b"
    ):
        resolve(arguments, {})
    assert resolve({**arguments, "access_token": "Kx93-made-up"}, {}).address == "http://b/jobs/"


@pytest.mark.parametrize(("text", "value"), [("true", True), ("1", True), ("OFF", False), ("no", False)])
def test_flags(text: str, value: bool) -> None:
    assert resolve({}, {"JOBWHEEL_EXECUTOR_ENABLED": text}).enabled is value


def test_dialects() -> None:
    assert resolve({"dialect": "c"}, {}).dialect is Dialect.C
    assert resolve({}, {"JOBWHEEL_EXECUTOR_DIALECT": "A"}).dialect is Dialect.A


def test_tokens_come_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("first-Qx7-made-up\n\n  second-Rt4-made-up\n")
    settings = resolve({"host": "0.0.0.0"}, {"JOBWHEEL_EXECUTOR_ACCESS_TOKEN_FILE": str(path)})
    assert [token.reveal() for token in settings.access_tokens] == ["first-Qx7-made-up", "second-Rt4-made-up"]
    assert "made-up" not in repr(settings)


@pytest.mark.parametrize("content", [b" \n", b"\xff\xfe", "naïve-made-up".encode(), None])
def test_a_file_that_gives_no_token_is_an_error_that_shows_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "tokens"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingError, match="access_token_file") as caught:
        resolve({"access_token_file": path}, {})
    assert "made-up" not in str(caught.value)


def test_tokens_from_two_places_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("first-Qx7-made-up")
    with pytest.raises(SettingError, match="left out when access_token is set") as caught:
        resolve({"access_token_file": path, "access_token": "other-Zw2-made-up"}, {})
    assert "made-up" not in str(caught.value)


def test_tokens_of_an_argument_go_before_those_of_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("of-the-file-Qx7-made-up")
    argument = "of-the-argument-Zw2-made-up"

    def tokens(arguments: dict[str, object], environ: dict[str, str]) -> list[str]:
        return [token.reveal() for token in resolve(arguments, environ).access_tokens]

    assert tokens({"access_token": argument}, {"JOBWHEEL_EXECUTOR_ACCESS_TOKEN_FILE": str(path)}) == [argument]
    assert tokens({"access_token_file": path}, {"JOBWHEEL_EXECUTOR_ACCESS_TOKEN": argument}) == [path.read_text()]
    # A file that is not asked need not be there.
    assert tokens({"access_token": argument}, {"JOBWHEEL_EXECUTOR_ACCESS_TOKEN_FILE": "/not/there"}) == [argument]


@pytest.mark.parametrize("value", [[5], b"Zw2-made-up", {"a": 1}, ["a", None]])
def test_a_token_that_is_no_text_is_refused_as_such(value: object) -> None:
    with pytest.raises(SettingError, match=r"access_token is '\*\*\*', but must be a text or a list of texts"):
        resolve({"access_token": value}, {})


def test_a_process_that_does_not_end_is_dead_within_two_seconds_of_its_time_out() -> None:
    # Force comes after four fifths of the grace time, whatever the handler does.
    assert resolve({}, {}).grace_s <= 2.0
