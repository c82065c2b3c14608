import itertools
import os
from pathlib import Path

import pytest

from jobwheel.cli import reload
from jobwheel.cli.reload import take_snapshot


def test_only_sources_are_watched(tmp_path: Path) -> None:
    for name in (
        "jobs.py",
        "shop/orders.py",
        "notes.txt",
        ".hidden/a.py",
        "venv/lib/b.py",
        "node_modules/c.py",
        "lib/site-packages/d.py",
        "shop/__pycache__/e.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "venv/pyvenv.cfg").touch()
    assert {Path(path).relative_to(tmp_path).as_posix() for path in take_snapshot(tmp_path)} == {
        "jobs.py",
        "shop/orders.py",
    }


def test_a_snapshot_differs_when_a_file_comes_changes_or_goes(tmp_path: Path) -> None:
    source = tmp_path / "jobs.py"
    source.write_text("a = 1\n")
    os.utime(source, ns=(1, 1))
    first = take_snapshot(tmp_path)
    assert take_snapshot(tmp_path) == first
    os.utime(source, ns=(1, 2))
    second = take_snapshot(tmp_path)
    source.write_text("a = 10\n")
    os.utime(source, ns=(1, 2))
    third = take_snapshot(tmp_path)
    (tmp_path / "more.py").touch()
    fourth = take_snapshot(tmp_path)
    source.unlink()
    snapshots = [first, second, third, fourth, take_snapshot(tmp_path)]
    assert all(one != other for one, other in itertools.pairwise(snapshots))


def test_a_file_that_goes_while_it_is_looked_at_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "dangling.py").symlink_to(tmp_path / "absent.py")
    assert take_snapshot(tmp_path) == {}


class FakeProgram:
    """A program that ends when it is asked to."""

    def __init__(self) -> None:
        self.asked = 0

    def poll(self) -> int | None:
        return 0 if self.asked else None

    def terminate(self) -> None:
        self.asked += 1


class NoSignals:
    """Counts how often the time passed."""

    def __init__(self) -> None:
        self.waits = 0

    def wait(self, _timeout_s: float) -> bool:
        self.waits += 1
        return False


def test_it_waits_until_files_are_no_longer_being_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = iter([0, 5, 9, 9])
    monkeypatch.setattr(reload, "take_snapshot", lambda _: {str(tmp_path / "jobs.py"): (1, next(sizes))})
    program, signals = FakeProgram(), NoSignals()
    before = reload.take_snapshot(tmp_path)
    assert reload._until_stopped(program, signals, tmp_path, before) is None  # type: ignore[arg-type]  # enough of each
    assert (program.asked, signals.waits) == (1, 3)
