import asyncio
import errno
import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobwheel.executor.errors import StorageError
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.turn import Turn
from jobwheel.kernel.fake_clock import FakeClock, settle
from tests.support.forks import FORK_DURING

HOLD = """
import asyncio, sys
from pathlib import Path
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.turn import Turn
from jobwheel.kernel.clock import SystemClock
turn = Turn(ExecutorSettings(log_path=Path(sys.argv[1]), port=9999), SystemClock())
print(turn.take(), flush=True)
sys.stdin.read()
"""


def turn_of(folder: Path, clock: FakeClock | None = None, **more: object) -> Turn:
    values: dict[str, object] = {"log_path": folder, "port": 9999, **more}
    return Turn(ExecutorSettings(**values), clock or FakeClock())  # type: ignore[arg-type]


@pytest.fixture
def holder(tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that has the turn until it ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


async def test_the_turn_comes_when_the_process_that_has_it_ends(
    tmp_path: Path, holder: "subprocess.Popen[str]", caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    clock = FakeClock()
    turn = turn_of(tmp_path, clock)
    assert not turn.take()
    waiting = asyncio.create_task(turn.wait(asyncio.Event()))
    await clock.advance(100)
    assert not waiting.done()
    assert f"executor.stands_by serving_process={holder.pid}" in caplog.text
    holder.kill()
    holder.wait()
    await clock.advance(1)
    assert await waiting
    assert caplog.text.count("executor.stands_by") == caplog.text.count("executor.takes_over") == 1
    turn.release()
    turn.release()


async def test_a_disk_that_refuses_for_a_while_ends_no_stand_by(
    tmp_path: Path, holder: "subprocess.Popen[str]", monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = FakeClock()
    turn = turn_of(tmp_path, clock)
    waiting = asyncio.create_task(turn.wait(asyncio.Event()))
    await settle()
    holder.kill()
    holder.wait()

    def full(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        await clock.advance(5)
        assert not waiting.done()
    assert caplog.text.count("executor.cannot_take_turn") == 1
    await clock.advance(1)
    assert await waiting
    turn.release()


def test_a_full_disk_keeps_nobody_from_the_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    turn = turn_of(tmp_path)
    assert turn.take()
    turn.release()


async def test_a_stop_ends_the_wait(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(turn_of(tmp_path).wait(stop))
    await settle()
    stop.set()
    assert not await waiting


def test_another_port_or_none_is_another_turn(tmp_path: Path, holder: "subprocess.Popen[str]") -> None:
    for port in (9998, 0, -1):
        turn = turn_of(tmp_path, port=port)
        assert turn.take()
        turn.release()


def test_executors_of_one_process_share_the_turn_until_the_last_of_them_stops(tmp_path: Path) -> None:
    first, second = turn_of(tmp_path, embedded_server=False), turn_of(tmp_path, embedded_server=False)
    assert first.take()
    assert second.take()
    first.release()
    assert asked_by_another_process(tmp_path) == "False\n"
    assert first.take()
    second.release()
    assert asked_by_another_process(tmp_path) == "False\n"
    first.release()
    assert asked_by_another_process(tmp_path) == "True\n"


def test_who_looks_for_the_holder_takes_the_turn_from_nobody_in_its_process(
    tmp_path: Path, holder: "subprocess.Popen[str]"
) -> None:
    late, quick = turn_of(tmp_path), turn_of(tmp_path)
    assert not late.take()
    holder.kill()
    holder.wait()
    assert quick.take()
    assert late._holder() == str(os.getpid())
    assert asked_by_another_process(tmp_path) == "False\n"
    quick.release()


def asked_by_another_process(folder: Path) -> str:
    command = [sys.executable, "-c", HOLD, str(folder)]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout


def test_a_child_that_was_forked_has_not_its_parents_turn(tmp_path: Path) -> None:
    turn = turn_of(tmp_path)
    assert turn.take()
    child = os.fork()
    if child == 0:
        os._exit(int(turn_of(tmp_path).take()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    turn.release()


async def test_a_mounted_executor_that_stands_by_is_warned_of(
    tmp_path: Path, holder: "subprocess.Popen[str]", caplog: pytest.LogCaptureFixture
) -> None:
    stop = asyncio.Event()
    stop.set()
    assert not await turn_of(tmp_path, embedded_server=False).wait(stop)
    assert "executor.mounted_in_several_processes" in caplog.text


def test_a_file_system_without_locks_lets_it_serve_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    turn = turn_of(tmp_path)
    assert turn.take()
    turn.release()
    assert "executor.cannot_lock" in caplog.text


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="log_path"):
        turn_of(tmp_path / "file" / "logs").take()


def test_a_child_that_is_forked_while_somebody_looks_for_the_turn_can_look(tmp_path: Path) -> None:
    """As a web server's worker, forked by a process whose executor stands by: it hung for ever."""
    program = f"""{FORK_DURING}
import fcntl, pathlib, sys
from jobwheel.executor.process_lock import ProcessLock

path = pathlib.Path(sys.argv[1])
look = lambda: ProcessLock.take(path)
print(fork_during(fcntl, "lockf", look, lambda: 0 if look() else 1))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "lock")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    assert told == "0\n"
