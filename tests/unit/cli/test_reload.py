import itertools
import os
from pathlib import Path

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
