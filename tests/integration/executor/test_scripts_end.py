"""Runs of scripts that are ended: no process of theirs is left, and the result says why."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.executor.conftest import Launch, MakeExecutor, registered
from tests.support.executor_peer import ExecutorPeer
from tests.support.processes import group_members, wait_for_numbers
from tests.support.recording_admin import RecordingAdmin, wait_until

pytestmark = pytest.mark.timeout(30)
GONE_WITHIN_S = 5.0
SCRIPT: dict[str, Any] = {"glueType": "GLUE_SHELL", "glueUpdatetime": 1_795_000_000_000}


@pytest.mark.parametrize("listens", [True, False], ids=["listens", "deaf"])
@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("kill", 500, "killed"),
        ("time-out", 502, "timed out after 3 s"),
        ("cover", 500, "Cover Early"),
        ("stop", 500, "the executor stopped"),
    ],
)
def test_an_ended_script_leaves_no_process(
    make_executor: MakeExecutor, admin: RecordingAdmin, tmp_path: Path, how: str, code: int, words: str, listens: bool
) -> None:
    executor = make_executor(scripts_enabled=True, grace_s=1, stop_deadline_s=3)
    executor.start_in_background()
    peer, ids = ExecutorPeer(executor.port), tmp_path / "ids"
    source = f"sleep 600 & echo $$ > {ids}; echo $! >> {ids}; while :; do sleep 600; done"
    source = source if listens else f"trap '' TERM; {source}"
    # What it starts has to be there before its time is over.
    log_id = peer.run("", glueSource=source, executorTimeout=3 if how == "time-out" else 0, **SCRIPT)
    leader, _ = wait_for_numbers(ids, 2)
    if how == "kill":
        assert peer.post("/kill", {"jobId": 7})["code"] == 200
    elif how == "cover":
        peer.run("", glueSource="echo", executorBlockStrategy="COVER_EARLY", **SCRIPT)
    elif how == "stop":
        executor.stop_in_background()
    result = admin.result_of(log_id)
    assert result["handleCode"] == code
    assert words in result["handleMsg"]
    wait_until(lambda: not group_members(leader), GONE_WITHIN_S)


PROGRAM = """
from jobwheel import Executor

executor = Executor(app_name="demo", scripts_enabled=True, log_path="logs")
executor.run()
"""


def test_a_killed_executor_leaves_no_script(launch_python: Launch, admin: RecordingAdmin, tmp_path: Path) -> None:
    program, ids = tmp_path / "program.py", tmp_path / "ids"
    program.write_text(PROGRAM)
    process = launch_python(program)
    source = f"trap '' TERM HUP; sleep 600 & echo $$ > {ids}; echo $! >> {ids}; wait"
    registered(admin).run("", glueSource=source, **SCRIPT)
    leader, _ = wait_for_numbers(ids, 2)
    process.kill()
    wait_until(lambda: not group_members(leader), GONE_WITHIN_S)
