"""Where settings come from, and what is refused."""

import stat
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jobwheel.admin.settings import Settings, SettingsError, load_settings, make_data_dir, setting_names
from jobwheel.kernel.secret import Secret
from jobwheel.schedule import Language

TLS = Path(__file__).parents[3] / "support" / "tls"


def load(environ: dict[str, str] | None = None, **overrides: object) -> Settings:
    loaded = load_settings(environ or {}, overrides)
    assert loaded.warnings == ()
    return loaded.settings


def config(tmp_path: Path, text: str) -> dict[str, str]:
    path = tmp_path / "jobwheel.toml"
    path.write_text(text)
    return {"JOBWHEEL_CONFIG": str(path)}


def test_the_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load()
    assert settings.data_dir == tmp_path / ".jobwheel"
    assert settings.database_url == f"sqlite:///{tmp_path}/.jobwheel/jobwheel.db"
    assert (settings.host, settings.port, settings.access_token) == ("127.0.0.1", 8080, None)
    assert (settings.look_ahead_s, settings.fast_lane, settings.slow_lane) == (5, 200, 100)
    assert (settings.claim_batch, settings.address_limit, settings.send_timeout_s) == (1000, 32, 3.0)
    assert (settings.slow_send_ms, settings.slow_sends) == (500, 10)
    assert settings.wheel_capacity == 200_000
    assert not settings.auto_create_groups
    assert settings.language == "en"
    assert not (tmp_path / ".jobwheel").exists()


def test_later_sources_win_and_are_named(tmp_path: Path) -> None:
    environ = config(tmp_path, 'port = 1\nhost = "h1"\nlog_level = "debug"\nfast_lane = 7')
    loaded = load_settings({**environ, "JOBWHEEL_PORT": "2", "JOBWHEEL_HOST": "h2"}, {"port": 3, "log_level": None})
    settings = loaded.settings
    assert (settings.port, settings.host, settings.log_level, settings.fast_lane) == (3, "h2", "DEBUG", 7)
    names = ("port", "host", "log_level", "slow_lane")
    assert [loaded.sources[name] for name in names] == ["argument", "environment", "file", "default"]
    assert set(loaded.sources) == set(setting_names())


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("JOBWHEEL_PORT", "0", "port", 0),
        ("JOBWHEEL_LOG_FORMAT", "JSON", "log_format", "json"),
        ("JOBWHEEL_LANGUAGE", "zh-tw", "language", "zh-TW"),
        ("JOBWHEEL_AUTO_CREATE_GROUPS", "yes", "auto_create_groups", True),
        ("JOBWHEEL_AUTO_CREATE_GROUPS", "off", "auto_create_groups", False),
        ("JOBWHEEL_SEND_TIMEOUT_S", "0.5", "send_timeout_s", 0.5),
        ("JOBWHEEL_ACCESS_TOKEN", "a-long-random-text", "access_token", Secret("a-long-random-text")),
        ("JOBWHEEL_METRICS_TOKEN", "m", "metrics_token", Secret("m")),
        ("JOBWHEEL_ADMIN_PASSWORD", "p", "admin_password", Secret("p")),
        ("JOBWHEEL_TIMEZONE", "Europe/Berlin", "timezone", "Europe/Berlin"),
        ("JOBWHEEL_DATABASE_URL", "sqlite:////srv/x.db", "database_url", "sqlite:////srv/x.db"),
        ("JOBWHEEL_DATA_DIR", "/srv/data", "data_dir", Path("/srv/data")),
        ("JOBWHEEL_HOST", "", "host", "127.0.0.1"),
        ("JOBWHEEL_PUBLIC_URL", "https://jobs.example.com/", "public_url", "https://jobs.example.com"),
        ("JOBWHEEL_TRUSTED_PROXIES", "10.0.0.7, 10.1.0.0/16 ,::1", "trusted_proxies", "10.0.0.7,10.1.0.0/16,::1"),
        ("JOBWHEEL_TRUSTED_PROXIES", "", "trusted_proxies", None),
        ("JOBWHEEL_ADMIN_PASSWORD", "", "admin_password", None),
    ],
)
def test_the_environment(variable: str, text: str, field: str, value: object) -> None:
    assert getattr(load({variable: text}), field) == value


def test_the_database_is_in_the_data_directory() -> None:
    assert load(data_dir="/srv/data").database_url == "sqlite:////srv/data/jobwheel.db"


@pytest.mark.parametrize(
    ("variable", "text", "part"),
    [
        ("JOBWHEEL_PORT", "http", "'http' is not a whole number"),
        ("JOBWHEEL_PORT", "65536", "65536 is not in 0-65535"),
        ("JOBWHEEL_PORT", "-1", "-1 is not in 0-65535"),
        ("JOBWHEEL_PORT", "9" * 30, "is not a whole number"),
        ("JOBWHEEL_LOG_LEVEL", "loud", "'loud' is not one of DEBUG, INFO, WARNING, ERROR"),
        ("JOBWHEEL_LOG_FORMAT", "xml", "'xml' is not one of text, json"),
        ("JOBWHEEL_AUTO_CREATE_GROUPS", "maybe", "'maybe' is neither true nor false"),
        ("JOBWHEEL_TIMEZONE", "Mars/Olympus", "'Mars/Olympus' is not known"),
        ("JOBWHEEL_SEND_TIMEOUT_S", "nan", "nan is not in 0.1-60.0"),
        ("JOBWHEEL_SEND_TIMEOUT_S", "soon", "'soon' is not a number"),
        ("JOBWHEEL_LOOK_AHEAD_S", "0", "0 is not in 1-60"),
        ("JOBWHEEL_LOOK_AHEAD_S", "2.5", "'2.5' is not a whole number"),
        ("JOBWHEEL_FAST_LANE", "0", "0 is not in 1-10000"),
        ("JOBWHEEL_CA_FILE", "/nonexistent.pem", "there is no file '/nonexistent.pem'"),
        ("JOBWHEEL_HOST", "a\nb", "cannot be printed"),
        ("JOBWHEEL_TRUSTED_PROXIES", "*", "'*' is neither an address such as 10.0.0.7 nor a network"),
        ("JOBWHEEL_TRUSTED_PROXIES", "10.0.0.7,", "'' is neither an address"),
        ("JOBWHEEL_TRUSTED_PROXIES", "10.0.0.7/8", "has host bits set"),
        ("JOBWHEEL_PUBLIC_URL", "jobs.example.com", "is not an address such as https://jobs.example.com"),
    ],
)
def test_a_bad_value_stops_the_start_and_is_named(variable: str, text: str, part: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load({variable: text})
    error = caught.value
    assert (error.code, error.field) == ("setting_invalid", variable.removeprefix("JOBWHEEL_").lower())
    assert error.message.startswith(f"{variable}: ")
    assert part in error.message


@pytest.mark.parametrize(
    ("text", "field", "part"),
    [
        ("prot = 1", "prot", "port"),
        ("[admin]\nport = 1", "admin", "port"),
        ("port = true", "port", "True is not a whole number"),
        ("port = 1.5", "port", "1.5 is not a whole number"),
        ("host = 7", "host", "7 is not a text"),
        ("access_token = 123456", "access_token", "is not a text"),
        ("auto_create_groups = 2", "auto_create_groups", "2 is neither true nor false"),
        ("send_timeout_s = true", "send_timeout_s", "True is not a number"),
        ("data_dir = ''", "data_dir", "is empty"),
        ("port = ", "config", "is not TOML"),
    ],
)
def test_a_bad_file_stops_the_start(tmp_path: Path, text: str, field: str, part: str) -> None:
    environ = config(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load(environ)
    assert caught.value.field == field
    assert part in caught.value.message
    assert str(tmp_path) in caught.value.message


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(SettingsError, match=r"JOBWHEEL_CONFIG: the file '/nonexistent.toml' cannot be read"):
        load({"JOBWHEEL_CONFIG": "/nonexistent.toml"})


def test_an_unknown_argument() -> None:
    with pytest.raises(SettingsError, match="valid ones are data_dir"):
        load(prot=1)


class TestTokens:
    @pytest.mark.parametrize("weak", ["", "default_token", "123456", " 123456 "])
    def test_what_everybody_knows_is_refused(self, weak: str) -> None:
        with pytest.raises(SettingsError, match=r"^JOBWHEEL_ACCESS_TOKEN: .*JOBWHEEL_ALLOW_WEAK_TOKEN") as caught:
            load({"JOBWHEEL_ACCESS_TOKEN": weak})
        assert caught.value.field == "access_token"

    @pytest.mark.parametrize("weak", ["", "default_token", "123456"])
    def test_unless_it_is_allowed(self, weak: str) -> None:
        environ = {"JOBWHEEL_ACCESS_TOKEN": weak, "JOBWHEEL_ALLOW_WEAK_TOKEN": "true"}
        loaded = load_settings(environ, {})
        assert loaded.settings.access_token == Secret(weak)
        assert len(loaded.warnings) == 1
        assert loaded.warnings[0].startswith("JOBWHEEL_ACCESS_TOKEN is a token that everybody knows")

    def test_secrets_are_not_shown(self) -> None:
        settings = load({"JOBWHEEL_ACCESS_TOKEN": "t-7351", "JOBWHEEL_ADMIN_PASSWORD": "p-7351"})
        assert "7351" not in repr(settings)

    def test_a_bad_secret_is_not_repeated(self) -> None:
        with pytest.raises(SettingsError) as caught:
            load({"JOBWHEEL_ACCESS_TOKEN": "t-7351\x07"})
        assert "7351" not in caught.value.message


class TestUnknownNames:
    def test_one_warning_each(self) -> None:
        loaded = load_settings({"JOBWHEEL_PROT": "1", "JOBWHEEL_port": "2", "PATH": "/bin"}, {})
        assert [warning.split()[0] for warning in loaded.warnings] == ["JOBWHEEL_PROT", "JOBWHEEL_port"]
        assert loaded.settings.port == 8080

    def test_what_a_cluster_injects_is_ignored(self) -> None:
        environ = {
            "JOBWHEEL_PORT": "tcp://10.0.0.1:8080",
            "JOBWHEEL_PORT_8080_TCP_ADDR": "10.0.0.1",
            "JOBWHEEL_SERVICE_HOST": "10.0.0.1",
        }
        loaded = load_settings(environ, {})
        assert loaded.settings.port == 8080
        assert loaded.sources["port"] == "default"
        assert len(loaded.warnings) == 1
        assert loaded.warnings[0].startswith("JOBWHEEL_PORT=tcp://10.0.0.1:8080")

    @pytest.mark.parametrize(
        "name",
        [
            "JOBWHEEL_EXECUTOR_PORT",
            "JOBWHEEL_EXECUTOR_ANYTHING",
            "JOBWHEEL_URL",
            "JOBWHEEL_JOB_ID",
            "JOBWHEEL_LOG_ID",
            "JOBWHEEL_PLANNED_TIME",
        ],
    )
    def test_what_is_not_the_admins_is_nobodys_business(self, name: str) -> None:
        assert load_settings({name: "x"}, {}).warnings == ()


class TestTls:
    files: ClassVar[dict[str, Any]] = {"tls_certificate": str(TLS / "certificate.pem"), "tls_key": TLS / "key.pem"}

    def test_both_or_none(self) -> None:
        settings = load(**self.files)
        assert (settings.tls_certificate, settings.tls_key) == (TLS / "certificate.pem", TLS / "key.pem")

    @pytest.mark.parametrize(("given", "missing"), [("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")])
    def test_one_alone_is_refused(self, given: str, missing: str) -> None:
        with pytest.raises(SettingsError) as caught:
            load(**{given: self.files[given]})
        assert caught.value.field == missing

    def test_files_that_hold_something_else_are_told_before_the_start(self, tmp_path: Path) -> None:
        other = tmp_path / "other.pem"
        other.write_text("jobs: []\n")
        with pytest.raises(SettingsError, match=r"^JOBWHEEL_CA_FILE: '.*other.pem' holds no certificates in PEM"):
            load({"JOBWHEEL_CA_FILE": str(other)})
        with pytest.raises(SettingsError) as caught:
            load(**{**self.files, "tls_key": other})
        assert caught.value.field == "tls_certificate"
        assert load(ca_file=TLS / "certificate.pem").ca_file == TLS / "certificate.pem"


class TestDataDir:
    def test_its_owner_alone_may_look_into_it(self, tmp_path: Path) -> None:
        settings = load(data_dir=tmp_path / "a" / "data")
        make_data_dir(settings)
        make_data_dir(settings)
        assert stat.S_IMODE(settings.data_dir.stat().st_mode) == 0o700

    def test_one_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(SettingsError, match="JOBWHEEL_DATA_DIR"):
            make_data_dir(load(data_dir=tmp_path / "file"))


def test_a_database_url_may_hold_a_password_and_is_not_shown() -> None:
    settings = load(database_url="postgresql://wheel:made-up-51d0@h/d")
    assert settings.database_url.endswith("made-up-51d0@h/d")
    assert "made-up-51d0" not in repr(settings)


@pytest.mark.parametrize("language", Language)
def test_messages_can_be_had_in_every_language_there_is(language: Language) -> None:
    assert load({"JOBWHEEL_LANGUAGE": language.value}).language == language


def test_a_language_that_nobody_has_written_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match="'fr' is not one of en, zh-CN, zh-TW"):
        load({"JOBWHEEL_LANGUAGE": "fr"})
