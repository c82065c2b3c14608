"""Scripts, end to end: they come with the request, run as processes, and their output is the run's log."""

import ast
import os
import shutil
import signal
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from jobwheel import Executor
from tests.integration.executor.conftest import MakeExecutor
from tests.support.executor_peer import ExecutorPeer
from tests.support.processes import wait_for_numbers
from tests.support.recording_admin import RecordingAdmin, wait_until

UPDATED_MS = 1_795_000_000_000
PLANNED_MS = 1_795_651_200_250


@pytest.fixture
def executor(make_executor: MakeExecutor) -> Executor:
    return make_executor(scripts_enabled=True)


@pytest.fixture
def peer(executor: Executor) -> ExecutorPeer:
    executor.start_in_background()
    return ExecutorPeer(executor.port)


def run_script(peer: ExecutorPeer, source: str, parameter: str = "", **more: Any) -> int:
    script = {"glueType": "GLUE_SHELL", "glueSource": source, "glueUpdatetime": UPDATED_MS}
    return peer.run("", parameter, **{**script, **more})


def output(peer: ExecutorPeer, log_id: int) -> list[str]:
    """What the script printed: the log without its first and last line and the time stamps."""
    lines = peer.log(log_id)["logContent"].splitlines()[1:-1]
    return [line.partition("] ")[2] for line in lines]


@pytest.mark.parametrize(
    ("glue_type", "source"),
    [
        ("GLUE_SHELL", 'echo "$1|$2|$3"'),
        ("GLUE_PYTHON", "import sys\nprint('|'.join(sys.argv[1:]))"),
        ("GLUE_NODEJS", "console.log(process.argv.slice(2).join('|'))"),
    ],
)
def test_a_script_gets_parameter_and_shard(
    peer: ExecutorPeer, admin: RecordingAdmin, glue_type: str, source: str
) -> None:
    parameter = 'a b; $(id) "q" 账户'
    log_id = run_script(peer, source, parameter, glueType=glue_type, broadcastIndex=2, broadcastTotal=5)
    assert admin.result_of(log_id)["handleCode"] == 200
    assert output(peer, log_id) == [f"{parameter}|2|5"]
    assert f"{glue_type} 7_{UPDATED_MS}." in peer.log(log_id)["logContent"].splitlines()[0]


def test_a_script_learns_its_run_from_the_environment_and_no_secret(
    make_executor: MakeExecutor, admin: RecordingAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBWHEEL_EXECUTOR_ACCESS_TOKEN", "willow-and-9-otters")
    monkeypatch.setenv("JOBWHEEL_DATABASE_URL", "postgresql://somebody:willow@host/name")
    monkeypatch.setenv("REGION", "north")
    executor = make_executor(scripts_enabled=True)
    executor.start_in_background()
    peer = ExecutorPeer(executor.port, "willow-and-9-otters")
    source = "env | grep -E '^(JOBWHEEL|REGION)' | sort"
    log_id = run_script(peer, source, scheduledTime=PLANNED_MS, broadcastIndex=1, broadcastTotal=3)
    assert admin.result_of(log_id)["handleCode"] == 200
    assert output(peer, log_id) == [
        "JOBWHEEL_JOB_ID=7",
        f"JOBWHEEL_LOG_ID={log_id}",
        "JOBWHEEL_PLANNED_TIME=2026-11-26T00:00:00.250Z",
        "JOBWHEEL_SHARD_INDEX=1",
        "JOBWHEEL_SHARD_TOTAL=3",
        "REGION=north",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("exit 3", "exit code 3"),
        ("kill -SEGV $$", "ended by the signal SIGSEGV (11)"),
        ("no-such-program", "exit code 127"),
    ],
)
def test_a_failed_script_tells_how_it_ended(
    peer: ExecutorPeer, admin: RecordingAdmin, source: str, message: str
) -> None:
    result = admin.result_of(run_script(peer, source))
    assert (result["handleCode"], result["handleMsg"]) == (500, message)


def test_both_streams_are_in_the_log_while_it_runs(peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path) -> None:
    go_on = tmp_path / "go-on"
    log_id = run_script(peer, f"echo one; echo two >&2; until [ -e {go_on} ]; do sleep 0.02; done; echo three")
    wait_until(lambda: "two" in peer.log(log_id)["logContent"])
    page = peer.log(log_id)
    assert [line.partition("] ")[2] for line in page["logContent"].splitlines()[1:]] == ["one", "two"]
    assert not page["isEnd"]
    go_on.touch()
    admin.result_of(log_id)
    assert output(peer, log_id) == ["one", "two", "three"]


def test_bytes_that_are_no_text_and_endless_lines_are_logged(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    log_id = run_script(peer, r"printf '\xff\xe8\xb4\xa6 ok\r\n'; head -c 25000 /dev/zero | tr '\0' x; printf end")
    assert admin.result_of(log_id)["handleCode"] == 200
    assert output(peer, log_id) == ["\ufffd账 ok", "x" * 10_000, "x" * 10_000, "x" * 5_000 + "end"]


def test_windows_line_ends_do_no_harm(peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path) -> None:
    log_id = run_script(peer, "if true\r\nthen echo yes\r\nfi\r\n")
    assert admin.result_of(log_id)["handleCode"] == 200
    assert output(peer, log_id) == ["yes"]
    (file,) = (tmp_path / "executor" / "gluesource").iterdir()
    assert file.read_bytes() == b"if true\nthen echo yes\nfi\n"


def test_the_file_is_its_owners_alone(peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path) -> None:
    admin.result_of(run_script(peer, "echo"))
    folder = tmp_path / "executor" / "gluesource"
    (file,) = folder.iterdir()
    assert file.name == f"7_{UPDATED_MS}.sh"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_change_applies_from_the_next_run_and_the_old_file_goes_after_the_last_one(
    peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path
) -> None:
    started, go_on, folder = tmp_path / "started", tmp_path / "go-on", tmp_path / "executor" / "gluesource"
    waits = f"touch {started}; until [ -e {go_on} ]; do sleep 0.02; done; echo old"
    old = run_script(peer, waits)
    wait_until(started.exists)
    new = run_script(peer, "echo new", glueUpdatetime=UPDATED_MS + 1000)
    go_on.touch()
    admin.wait_for_results({old, new})
    assert (output(peer, old), output(peer, new)) == (["old"], ["new"])
    assert [file.name for file in folder.iterdir()] == [f"7_{UPDATED_MS + 1000}.sh"]
    # A run of the old version that comes late, as one that is sent again, still runs what it was meant to.
    late = run_script(peer, "echo old again")
    admin.result_of(late)
    assert output(peer, late) == ["old again"]
    assert [file.name for file in folder.iterdir()] == [f"7_{UPDATED_MS + 1000}.sh"]


def test_a_file_that_somebody_changed_is_written_anew(
    peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path
) -> None:
    admin.result_of(run_script(peer, "echo mine"))
    file = tmp_path / "executor" / "gluesource" / f"7_{UPDATED_MS}.sh"
    file.write_text("echo theirs")
    log_id = run_script(peer, "echo mine")
    admin.result_of(log_id)
    assert output(peer, log_id) == ["mine"]


def test_what_a_script_left_running_does_not_hold_its_run_up(
    peer: ExecutorPeer, admin: RecordingAdmin, tmp_path: Path
) -> None:
    ids = tmp_path / "ids"
    log_id = run_script(peer, f"sleep 600 & echo $! > {ids}; echo done")
    assert admin.result_of(log_id)["handleCode"] == 200
    done, warning = output(peer, log_id)
    assert done == "done"
    assert "still running" in warning
    (left,) = wait_for_numbers(ids, 1)
    os.kill(left, signal.SIGKILL)


def test_output_of_a_tee_behind_the_script_is_kept(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    log_id = run_script(peer, "exec > >(sleep 0.2; cat); echo last words")
    assert admin.result_of(log_id)["handleCode"] == 200
    assert output(peer, log_id) == ["last words"]


@pytest.mark.parametrize(("glue_type", "named"), [("GLUE_POWERSHELL", "powershell or pwsh"), ("GLUE_PHP", "php")])
def test_a_missing_interpreter_is_named(
    peer: ExecutorPeer, admin: RecordingAdmin, monkeypatch: pytest.MonkeyPatch, glue_type: str, named: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = admin.result_of(run_script(peer, "echo", glueType=glue_type))
    assert result["handleCode"] == 500
    assert f"{glue_type} needs {named}, which is not on this executor's PATH" in result["handleMsg"]


@pytest.mark.parametrize(
    ("program", "options", "suffix", "script"),
    [
        ("pwsh", ["-File"], ".ps1", ("GLUE_POWERSHELL", "Write-Output $args\r\n")),
        ("powershell", ["-File"], ".ps1", ("GLUE_POWERSHELL", "Write-Output $args\r\n")),
        ("php", [], ".php", ("GLUE_PHP", "<?php echo 1;\n")),
    ],
)
def test_the_command_line_of_an_interpreter_that_may_not_be_here(
    peer: ExecutorPeer,
    admin: RecordingAdmin,
    tmp_path: Path,
    program: str,
    options: list[str],
    suffix: str,
    script: tuple[str, str],
) -> None:
    """One of its name stands in for it: it says what it is given, and what the file holds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    stand_in = folder / program
    told = "import pathlib, sys; rest = sys.argv[1:]; print(rest); print(repr(pathlib.Path(rest[-4]).read_bytes()))"
    stand_in.write_text(f"#!{sys.executable}\n{told}\nsys.exit(3)\n")
    stand_in.chmod(0o755)
    glue_type, source = script
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", str(folder))
        log_id = run_script(peer, source, "-a 'b'", glueType=glue_type, broadcastIndex=1, broadcastTotal=2)
        assert "exit code 3" in admin.result_of(log_id)["handleMsg"]
    given, content = output(peer, log_id)[:2]
    arguments = ast.literal_eval(given)
    assert arguments[: len(options)] == options
    assert arguments[len(options)].endswith(f"/gluesource/7_{UPDATED_MS}{suffix}")
    assert arguments[len(options) + 1 :] == ["-a 'b'", "1", "2"]
    assert ast.literal_eval(content) == source.encode()


@pytest.mark.skipif(shutil.which("php") is None, reason="PHP is not here")
@pytest.mark.parametrize(("source", "code", "words"), [("", 200, ""), ("throw new Exception('no');", 500, "255")])
def test_a_php_script(peer: ExecutorPeer, admin: RecordingAdmin, source: str, code: int, words: str) -> None:
    printed = "<?php echo implode('|', array_slice($argv, 1)), PHP_EOL;"
    log_id = run_script(peer, f"{printed} {source}", "-v 账户", glueType="GLUE_PHP")
    result = admin.result_of(log_id)
    assert result["handleCode"] == code
    assert words in (result["handleMsg"] or "")
    assert output(peer, log_id)[0] == "-v 账户|0|1"


def test_a_parameter_that_no_process_can_be_given_fails_the_run(peer: ExecutorPeer, admin: RecordingAdmin) -> None:
    result = admin.result_of(run_script(peer, "echo", "a\0b"))
    assert (result["handleCode"], result["handleMsg"]) == (500, "the script cannot be run: embedded null byte")
    result = admin.result_of(run_script(peer, "echo", "x" * 300_000))
    assert "Argument list too long" in result["handleMsg"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"glueType": "GLUE_GROOVY"}, "GLUE_GROOVY is Java source: it runs on Java executors alone"),
        ({"glueType": "GLUE_LUA"}, "glueType GLUE_LUA is not supported; supported: BEAN, GLUE_SHELL"),
        ({"glueSource": None}, "brings no script (glueSource is empty)"),
        ({"glueSource": " \n"}, "brings no script (glueSource is empty)"),
    ],
)
def test_what_cannot_run_here_is_refused(peer: ExecutorPeer, fields: dict[str, Any], words: str) -> None:
    request = peer.trigger("", glueType="GLUE_SHELL", glueSource="echo")
    reply = peer.post("/run", {**request, **fields})
    assert reply["code"] == 500
    assert words in reply["msg"]


def test_scripts_are_off_unless_the_executor_turns_them_on(make_executor: MakeExecutor, tmp_path: Path) -> None:
    executor = make_executor()
    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    reply = peer.post("/run", peer.trigger("", glueType="GLUE_SHELL", glueSource="echo"))
    assert reply["code"] == 500
    assert "scripts are off on this executor; its setting scripts_enabled turns them on" in reply["msg"]
    assert not (tmp_path / "executor" / "gluesource").exists()


def test_a_start_removes_what_an_earlier_process_left(make_executor: MakeExecutor, tmp_path: Path) -> None:
    folder = tmp_path / "executor" / "gluesource"
    folder.mkdir(parents=True, mode=0o755)
    (folder / "3_1795000000000.sh").write_text("echo old")
    make_executor(scripts_enabled=True).start_in_background()
    assert not list(folder.iterdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
