import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import log_retention
from jobwheel.executor.log_retention import LogCleaner, Retention, Sweep, Swept
from jobwheel.executor.run_log import DAY_MS, RunLogFolder, day_of
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import FakeClock

NOW_MS = 1_795_651_200_000


class Logs:
    """A folder of run logs, whose files are as old as a test says."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.open: set[int] = set()
        self._folder = RunLogFolder(root, FakeClock(NOW_MS))

    def put(self, log_id: int, days_ago: float, size: int = 10, changed_days_ago: float | None = None) -> Path:
        at_ms = NOW_MS - int(days_ago * DAY_MS)
        log = self._folder.create(log_id, at_ms)
        log.close()
        path = Path(log.path)
        path.write_bytes(b"x" * size)
        changed_s = (at_ms if changed_days_ago is None else NOW_MS - int(changed_days_ago * DAY_MS)) / 1000
        os.utime(path, (changed_s, changed_s))
        return path

    def sweep(self, days: int = 0, most_bytes: int = 0) -> Swept:
        sweep = Sweep(str(self.root), Retention(days, most_bytes), self.open.__contains__, NOW_MS)
        for _ in sweep.steps():
            pass
        return sweep.swept

    @property
    def left(self) -> list[int]:
        return sorted(int(path.stem) for path in self.root.glob("*/*.log"))


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path / "logs")


def test_logs_older_than_so_many_days_go_with_their_folders(logs: Logs) -> None:
    for log_id, days_ago in enumerate([0, 0.5, 1, 1.9, 2.1, 3, 40]):
        logs.put(log_id, days_ago)
    assert logs.sweep(days=3).files == 1
    assert logs.left == [0, 1, 2, 3, 4, 5]
    assert logs.sweep(days=1).files >= 2
    assert set(logs.left) <= {0, 1, 2, 3}
    assert {0, 1, 2} <= set(logs.left)
    assert {path.name for path in logs.root.iterdir()} <= {day_of(NOW_MS - days * DAY_MS) for days in range(3)}


def test_zero_days_are_for_ever(logs: Logs) -> None:
    logs.put(1, 4000)
    assert logs.sweep(days=0) == Swept()
    assert logs.left == [1]


@pytest.mark.parametrize(("days", "most_bytes"), [(1, 0), (0, 1)])
def test_the_log_of_an_open_run_is_kept_however_old_and_big(logs: Logs, days: int, most_bytes: int) -> None:
    logs.put(1, 50, size=5000)
    logs.put(2, 50)
    logs.open = {1}
    assert logs.sweep(days, most_bytes).files == 1
    assert logs.left == [1]
    logs.open = set()
    assert logs.sweep(days, most_bytes).files == 1
    assert logs.left == []


def test_a_run_that_ended_lately_is_not_old(logs: Logs) -> None:
    logs.put(1, 50, changed_days_ago=1)
    assert logs.sweep(days=30).files == 0
    assert logs.left == [1]


def test_of_too_many_bytes_the_oldest_go(logs: Logs) -> None:
    for log_id in range(10):
        logs.put(log_id, days_ago=(9 - log_id) / 4, size=100)
    swept = logs.sweep(most_bytes=450)
    assert (swept.files, swept.bytes, swept.left_bytes) == (6, 600, 400)
    assert logs.left == [6, 7, 8, 9]
    assert logs.sweep(most_bytes=450).files == 0


def test_what_open_runs_take_is_made_up_for_by_others(logs: Logs) -> None:
    for log_id in range(4):
        logs.put(log_id, days_ago=(4 - log_id) / 100, size=100)
    logs.open = {0}
    assert logs.sweep(most_bytes=250).left_bytes == 200
    assert logs.left == [0, 3]


def index_of(path: Path, size: int) -> Path:
    """The index of a log, read by somebody a moment ago."""
    index = path.with_name(f"{path.name}.index")
    index.write_bytes(b"x" * size)
    os.utime(index, (NOW_MS / 1000, NOW_MS / 1000))
    return index


@pytest.mark.parametrize(("days", "most_bytes"), [(30, 0), (0, 199)])
def test_an_index_counts_and_goes_with_its_log(logs: Logs, days: int, most_bytes: int) -> None:
    old = logs.put(1, 50, size=60)
    index = index_of(old, size=50)
    young = index_of(logs.put(2, 1, size=60), size=30)
    swept = logs.sweep(days, most_bytes)
    assert (swept.files, swept.bytes, swept.left_bytes) == (1, 110, 90 if most_bytes else 0)
    assert logs.left == [2]
    assert young.exists()
    assert not index.exists()
    assert not old.parent.exists()


def test_an_index_whose_log_is_gone_goes_when_its_time_comes(logs: Logs) -> None:
    path = logs.put(1, 50)
    index = index_of(path, size=50)
    path.unlink()
    assert logs.sweep(days=30).files == 0
    os.utime(index, (0, 0))
    assert logs.sweep(days=30).bytes == 50
    assert not path.parent.exists()


def test_what_is_not_a_runs_log_is_left_alone(logs: Logs, tmp_path: Path) -> None:
    day = logs.put(1, 50).parent
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "2.log").write_text("not ours")
    (logs.root / "2020-01-01").symlink_to(elsewhere)
    (day / "3.log").symlink_to(elsewhere / "2.log")
    others = [
        day / "notes.txt",
        day / "7.index",
        day / "7.log.index.old",
        logs.root / "spool" / "4.log",
        logs.root / "2020-13-001" / "5.log",
    ]
    for path in others:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not ours")
        os.utime(path, (0, 0))
    assert logs.sweep(days=1, most_bytes=1).files == 1
    assert all(path.exists() for path in [*others, day / "3.log", elsewhere / "2.log"])


def test_a_file_that_cannot_be_removed_holds_up_no_other(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    logs.put(1, 50)
    logs.put(2, 49)
    unlink = os.unlink

    def refuse(path: str) -> None:
        if path.endswith("/1.log"):
            raise PermissionError(13, "Permission denied", path)
        unlink(path)

    monkeypatch.setattr(os, "unlink", refuse)
    swept = logs.sweep(days=30)
    assert (swept.files, swept.failed) == (1, 1)
    assert "1.log" in swept.error
    assert logs.left == [1]


def test_a_step_removes_a_bounded_number(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_retention, "MOST_PER_STEP", 3)
    for log_id in range(10):
        logs.put(log_id, 50)
    sweep = Sweep(str(logs.root), Retention(30, 0), lambda _: False, NOW_MS)
    before = 0
    for _ in sweep.steps():
        assert sweep.swept.files - before <= 3
        before = sweep.swept.files
    assert before == 10


async def test_the_cleaner_tells_what_it_removed(logs: Logs, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    logs.put(1, 50)
    logs.put(2, 50, size=3)
    logs.open = {1}
    # A clock whose waits pass, in a time that a test sets.
    cleaner = LogCleaner(str(logs.root), Retention(30, 5), logs.open.__contains__, at(NOW_MS))
    assert (await cleaner.run_once()).files == 1
    assert "run_logs.removed files=1 bytes=3" in caplog.text
    assert "run_logs.over_limit bytes=10 most_bytes=5" in caplog.text
    caplog.clear()
    gone = LogCleaner(str(logs.root / "none"), Retention(30, 0), logs.open.__contains__, at(NOW_MS))
    assert (await gone.run_once()).files == 0
    assert "run_logs.cannot_sweep" in caplog.text


def at(now_ms: int) -> SystemClock:
    clock = SystemClock()
    clock.now = lambda: now_ms  # type: ignore[method-assign]
    return clock


async def test_it_sweeps_soon_after_the_start_and_each_hour(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    sweeps: list[float] = []
    clock = FakeClock(NOW_MS)

    async def noting(cleaner: LogCleaner) -> Swept:
        sweeps.append(clock.monotonic())
        return Swept()

    monkeypatch.setattr(LogCleaner, "run_once", noting)
    cleaner = LogCleaner(str(logs.root), Retention(30, 0), lambda _: False, clock)
    began_s = clock.monotonic()
    await cleaner.start()
    await clock.advance(2 * 3600)
    await cleaner.stop()
    assert [round(swept_s - began_s) for swept_s in sweeps] == [60, 3660]


async def test_without_a_limit_it_does_nothing(logs: Logs) -> None:
    clock = FakeClock(NOW_MS)
    cleaner = LogCleaner(str(logs.root), Retention(0, 0), lambda _: False, clock)
    await cleaner.start()
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert clock.waiting == 0
    await cleaner.stop()


def test_a_folder_that_goes_while_a_log_is_made_is_made_again(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mkdir: Any = Path.mkdir
    removed: list[Path] = []

    def made_and_gone(path: Path, *arguments: object, **options: object) -> None:
        mkdir(path, *arguments, **options)
        if not removed:
            removed.append(path)
            path.rmdir()

    monkeypatch.setattr(Path, "mkdir", made_and_gone)
    log = RunLogFolder(tmp_path, FakeClock()).create(1, NOW_MS)
    log.close()
    assert Path(log.path).exists()
    assert removed
