import pytest

from jobwheel.executor.allowed import AllowedHost, read_hosts, read_programs
from jobwheel.executor.errors import SettingError
from jobwheel.executor.settings import resolve


def test_hosts_with_and_without_a_port() -> None:
    hosts = read_hosts("http_job_hosts", "API.example.com, 10.0.0.7:8080, [::1]:80, ,[fd00::7]")
    assert hosts == (
        AllowedHost("api.example.com"),
        AllowedHost("10.0.0.7", 8080),
        AllowedHost("::1", 80),
        AllowedHost("fd00::7"),
    )
    assert [str(host) for host in hosts] == ["api.example.com", "10.0.0.7:8080", "[::1]:80", "[fd00::7]"]


@pytest.mark.parametrize(
    "value",
    ["*", "*.example.com", "http://a", "a/b", "a?x", "a#x", "u:p@a", "a:0", "a:99999", "::1", "账.cn", [7], 7, "a b"],
)
def test_what_is_no_host_stops_the_start(value: object) -> None:
    with pytest.raises(SettingError, match="setting http_job_hosts"):
        resolve({"http_job_hosts": value}, {})


def test_programs_are_names_or_absolute_paths() -> None:
    settings = resolve({}, {"JOBWHEEL_EXECUTOR_COMMAND_JOB_PROGRAMS": " rsync, /usr/bin/env ,rsync,"})
    assert settings.command_job_programs == ("rsync", "/usr/bin/env")
    assert resolve({"command_job_programs": []}, {}).command_job_programs == ()


@pytest.mark.parametrize("value", ["./here", "bin/x", ["../up"], [7], 7, True])
def test_what_is_no_program_stops_the_start(value: object) -> None:
    with pytest.raises(SettingError, match="setting command_job_programs"):
        resolve({"command_job_programs": value}, {})


def test_programs_of_a_list() -> None:
    assert read_programs("command_job_programs", ["rsync", ""]) == ("rsync",)
