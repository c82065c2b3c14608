"""Stopping and killing what a run has started, to the last of its grandchildren."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobwheel.executor.child_process import ChildProcess, Command
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.run_log import RunLog, RunLogFolder
from jobwheel.kernel.clock import SystemClock
from tests.support.executor_peer import DATE_MS
from tests.support.processes import group_members, is_alive, wait_for_numbers
from tests.support.recording_admin import wait_until

GONE_WITHIN_S = 5.0


@dataclass
class Scene:
    """A child whose shell script writes process ids into the file `$ids`."""

    run_log: RunLog
    ids: Path
    child: ChildProcess
    threads: ThreadPoolExecutor

    def begin(self, source: str) -> "Future[Outcome]":
        environment = {**os.environ, "ids": str(self.ids)}
        return self.threads.submit(self.child.run, Command(("bash", "-c", source), environment))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    run_log = RunLogFolder(tmp_path, SystemClock()).create(1, DATE_MS)
    child = ChildProcess(run_log.write, SystemClock())
    with ThreadPoolExecutor() as threads:
        try:
            yield Scene(run_log, tmp_path / "ids", child, threads)
        finally:
            child.kill()
    run_log.close()


def test_a_killed_script_leaves_no_process(scene: Scene) -> None:
    ended = scene.begin("sleep 600 & echo $$ > $ids; echo $! >> $ids; sleep 600")
    leader, grandchild = wait_for_numbers(scene.ids, 2)
    assert scene.child.kill()
    assert ended.result(GONE_WITHIN_S) == Outcome(500, "ended by the signal SIGKILL (9)")
    wait_until(lambda: not group_members(leader), GONE_WITHIN_S)
    assert not is_alive(grandchild)


def test_stop_lets_the_script_end_by_itself_and_then_leaves_nothing(scene: Scene) -> None:
    # The grandchild does not listen, and holds no output: nothing but its group leads to it.
    deaf = "(trap '' TERM; echo $BASHPID >> $ids; while :; do sleep 600; done) > /dev/null 2>&1 &"
    ended = scene.begin(f"trap 'echo tidied; exit 0' TERM; {deaf} echo $$ >> $ids; while :; do sleep 0.02; done")
    leader = next(each for each in wait_for_numbers(scene.ids, 2) if os.getpgid(each) == each)
    scene.child.stop()
    assert ended.result(GONE_WITHIN_S) == Outcome(200)
    assert "tidied" in Path(scene.run_log.path).read_text()
    wait_until(lambda: not group_members(leader), GONE_WITHIN_S)


def test_stop_waits_for_what_the_script_has_started(scene: Scene) -> None:
    # A shell ends at once; its program has something to tidy up, which takes longer than output is waited for.
    program = "import signal, sys, time; signal.signal(15, lambda *_: None); print('up', flush=True); signal.pause(); "
    program += "time.sleep(1.3); print('tidied')"
    ended = scene.begin(f'{sys.executable} -c "{program}"; :')
    wait_until(lambda: "up" in Path(scene.run_log.path).read_text())
    scene.child.stop()
    assert ended.result(GONE_WITHIN_S).code == 500
    assert "tidied" in Path(scene.run_log.path).read_text()


def test_a_script_that_does_not_listen_is_killed(scene: Scene) -> None:
    ended = scene.begin("trap '' TERM; echo $$ > $ids; while :; do sleep 600; done")
    wait_for_numbers(scene.ids, 1)
    scene.child.stop()
    assert not ended.done()
    assert scene.child.kill()
    assert ended.result(GONE_WITHIN_S) == Outcome(500, "ended by the signal SIGKILL (9)")


def test_kill_takes_what_the_script_left_behind(scene: Scene) -> None:
    # The script is over, its run not yet: what it left still has the output.
    ended = scene.begin("sleep 600 & echo $! > $ids; exit 0")
    (grandchild,) = wait_for_numbers(scene.ids, 1)
    scene.child.kill()
    ended.result(GONE_WITHIN_S)
    wait_until(lambda: not is_alive(grandchild), GONE_WITHIN_S)


@pytest.mark.parametrize("end", [ChildProcess.stop, ChildProcess.kill])
def test_what_is_ended_before_it_begins_does_not_begin(scene: Scene, end: object) -> None:
    assert callable(end)
    end(scene.child)
    assert scene.begin("echo $$ > $ids").result(GONE_WITHIN_S) == Outcome(500, "it was ended before it began")
    assert not scene.ids.exists()


def test_kill_after_the_end_touches_nobody(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scene.begin("true").result(GONE_WITHIN_S) == Outcome(200)
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda group, number: signalled.append(group))
    assert scene.child.kill()
    scene.child.stop()
    assert signalled == []


def test_signals_from_many_threads_meet_a_script_that_is_ending(scene: Scene) -> None:
    for _ in range(20):
        child = ChildProcess(scene.run_log.write, SystemClock())
        start = threading.Barrier(3)

        def end(child: ChildProcess = child, start: threading.Barrier = start) -> bool:
            start.wait()
            return child.kill()

        killers = [scene.threads.submit(end) for _ in range(2)]
        start.wait()
        outcome = child.run(Command(("true",), os.environ))
        assert outcome.message in (None, "it was ended before it began", "ended by the signal SIGKILL (9)")
        assert all(killer.result(GONE_WITHIN_S) for killer in killers)


def test_a_child_that_somebody_else_reaped_is_no_success(scene: Scene) -> None:
    # As in an application that ignores the end of its children: the system reaps them at once.
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        outcome = scene.begin("true").result(GONE_WITHIN_S)
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert outcome == Outcome(500, "how it ended is not known: its exit was lost")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_descriptor_and_no_thread_is_left(scene: Scene) -> None:
    scene.begin("true").result(GONE_WITHIN_S)
    descriptors, threads = open_descriptors(), threading.active_count()
    for _ in range(5):
        child = ChildProcess(scene.run_log.write, SystemClock())
        child.run(Command(("bash", "-c", "echo x; exit 1"), os.environ))
        with pytest.raises(FileNotFoundError):
            ChildProcess(scene.run_log.write, SystemClock()).run(Command(("/nowhere/at/all",), os.environ))
    wait_until(lambda: threading.active_count() <= threads)
    assert open_descriptors() <= descriptors


DIES_IN_BETWEEN = """
import os, signal, sys
from jobwheel.executor.child_process import ChildProcess, Command
from jobwheel.executor.lifeline import Lifeline
from jobwheel.kernel.clock import SystemClock

def die(lifeline, group):
    print(group, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

Lifeline.tie = die
ChildProcess(print, SystemClock()).run(Command(("bash", "-c", "echo > began; sleep 600"), os.environ))
"""


def test_who_dies_before_the_child_is_tied_to_it_leaves_none(tmp_path: Path) -> None:
    command = [sys.executable, "-c", DIES_IN_BETWEEN]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL
    wait_until(lambda: not group_members(int(ended.stdout)))
    assert not (tmp_path / "began").exists()


@pytest.mark.parametrize("name", ["PLAIN", "with.a-dot"])
def test_the_program_gets_its_environment_whole_and_an_empty_input(scene: Scene, name: str) -> None:
    command = Command(("bash", "-c", "cat; env"), {"PATH": os.environ["PATH"], name: "x y"})
    assert scene.child.run(command) == Outcome(200)
    assert f"{name}=x y\n" in Path(scene.run_log.path).read_text()
