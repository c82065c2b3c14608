"""The built-in `commandJobHandler` and the samples, end to end."""

from pathlib import Path

import pytest

from jobwheel.executor import HandlerError
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import RecordingAdmin


@pytest.fixture
def peer(make_executor: MakeExecutor) -> ExecutorPeer:
    executor = make_executor(command_job_programs="printf,/usr/bin/env,no-such-program", sample_handlers=True)
    executor.start_in_background()
    return ExecutorPeer(executor.port)


@pytest.mark.parametrize(
    "parameter",
    ['["printf", "%s\\\\n", "a b", "$(id)", "*"]', "printf '%s\\n' \"a b\" '$(id)' '*'"],
)
def test_a_program_gets_its_arguments_as_they_are(peer: ExecutorPeer, admin: RecordingAdmin, parameter: str) -> None:
    log_id = peer.run("commandJobHandler", parameter)
    assert admin.result_of(log_id)["handleCode"] == 200
    lines = [line.partition("] ")[2] for line in peer.log(log_id)["logContent"].splitlines()]
    assert lines[1:-1] == ["a b", "$(id)", "*"]


def test_a_failing_program_and_its_environment(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    log_id = peer.run("commandJobHandler", "/usr/bin/env --no-such-option")
    assert admin.result_of(log_id)["handleMsg"] == "exit code 125"
    log_id = peer.run("commandJobHandler", "/usr/bin/env")
    admin.result_of(log_id)
    assert f"JOBWHEEL_LOG_ID={log_id}\n" in peer.log(log_id)["logContent"]


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("", "the parameter is no command: it is empty"),
        ("[]", "the parameter is no command: it is empty"),
        ('["printf", 7]', "as a JSON list of texts"),
        ("printf 'a", "No closing quotation"),
        ("id", "'id' may not be run here; the executor's setting command_job_programs allows printf, /usr/bin/env"),
        ("/usr/bin/printf x", "'/usr/bin/printf' may not be run here"),
        ("./printf x", "'./printf' may not be run here"),
        ("printf;id", "'printf;id' may not be run here"),
        ('["printf", "a\\u0000b"]', "printf cannot be run: embedded null byte"),
        ("no-such-program", "no-such-program is not on this executor"),
    ],
)
def test_what_is_not_run_says_why(peer: ExecutorPeer, admin: RecordingAdmin, parameter: str, words: str) -> None:
    result = admin.result_of(peer.run("commandJobHandler", parameter))
    assert result["handleCode"] == 500
    assert words in result["handleMsg"]


def test_the_samples(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    log_id = peer.run("demoJobHandler", "1")
    assert admin.result_of(log_id)["handleMsg"] == "1 beats"
    assert "beat 1 of 1" in peer.log(log_id)["logContent"]
    log_id = peer.run("shardingJobHandler", broadcastIndex=1, broadcastTotal=3)
    assert admin.result_of(log_id)["handleMsg"] == "shard 1 of 3"


def test_nothing_is_built_in_unless_a_setting_says_so(make_executor: MakeExecutor) -> None:
    assert make_executor().handlers == []
    executor = make_executor(http_job_hosts=["a"], command_job_programs=["true"], sample_handlers=True)
    assert executor.handlers == ["commandJobHandler", "demoJobHandler", "httpJobHandler", "shardingJobHandler"]
    with pytest.raises(HandlerError, match="is registered already"):
        executor.register("commandJobHandler", lambda: None)


def test_a_program_is_not_looked_for_in_the_working_directory(
    peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "no-such-program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert admin.result_of(peer.run("commandJobHandler", "no-such-program"))["handleCode"] == 500
