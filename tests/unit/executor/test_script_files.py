"""The folder of scripts, as several processes share it: locks are per opened file, so one process can play two."""

import errno
import os
from pathlib import Path

import pytest

from jobwheel.executor.errors import StorageError
from jobwheel.executor.script_files import ScriptFiles, ScriptVersion

OLD = ScriptVersion(7, 1_795_000_000_000, ".sh", "echo old")
NEW = ScriptVersion(7, 1_795_000_001_000, ".sh", "echo new")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "gluesource"


def opened(folder: Path) -> ScriptFiles:
    files = ScriptFiles(folder)
    files.open()
    return files


def test_a_process_that_starts_leaves_alone_what_another_one_runs(folder: Path) -> None:
    with opened(folder).held(OLD) as path:
        opened(folder)
        assert path.read_text() == "echo old"
    opened(folder)
    assert not path.exists()


def test_a_version_that_another_process_runs_stays(folder: Path) -> None:
    mine, theirs = opened(folder), opened(folder)
    with mine.held(OLD):
        pass
    with theirs.held(OLD) as path:
        with mine.held(NEW):
            pass
        assert path.read_text() == "echo old"
    with mine.held(NEW):
        pass
    assert [file.name for file in folder.iterdir()] == [NEW.file_name]


def test_a_held_file_is_not_written_into(folder: Path) -> None:
    other = ScriptVersion(OLD.job_id, OLD.updated_ms, OLD.suffix, "echo another installation's")
    files = opened(folder)
    with files.held(OLD) as path, files.held(other) as second, files.held(other) as third:
        # Also for an interpreter that is started, and has not opened its file yet.
        assert path.read_text() == "echo old"
        assert second == third
        assert second.read_text() == other.source
    with files.held(NEW):
        pass
    assert [file.name for file in folder.iterdir()] == [NEW.file_name]


def test_a_script_that_has_written_into_its_file_does_not_change_the_next_run(folder: Path) -> None:
    files = opened(folder)
    with files.held(OLD) as path:
        path.write_text("echo spoilt")
    with files.held(OLD) as path:
        assert path.read_text() == "echo old"
        path.write_text("echo spoilt too")
    with files.held(OLD) as path:
        assert path.read_text() == "echo old"
    opened(folder)
    assert list(folder.iterdir()) == []


def test_without_hard_links_scripts_are_written_as_well(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(source: Path, target: Path) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    with opened(folder).held(OLD) as path:
        assert path.read_text() == "echo old"
    assert [file.name for file in folder.iterdir()] == [OLD.file_name]


def test_a_source_that_is_no_text_is_not_written(folder: Path) -> None:
    files = opened(folder)
    with pytest.raises(UnicodeError), files.held(ScriptVersion(7, 1, ".sh", "\ud800")):
        pass
    assert list(folder.iterdir()) == []


def test_a_folder_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "gluesource").write_text("a file")
    with pytest.raises(StorageError, match="gluesource"):
        opened(tmp_path / "gluesource")


def test_what_a_script_has_put_beside_itself_keeps_no_executor_from_starting(folder: Path) -> None:
    with opened(folder).held(OLD) as path:
        (folder / "work").mkdir()
        (folder / "data.csv").write_text("a, b")
        (folder / "link").symlink_to(folder)
        (folder / "7_1.sh").mkdir()
        os.mkfifo(folder / "pipe")
    opened(folder)
    assert not path.exists()
    assert {file.name for file in folder.iterdir()} == {"work", "data.csv", "link", "7_1.sh", "pipe"}


def test_a_draft_that_a_process_left_behind_is_removed(folder: Path) -> None:
    opened(folder)
    (folder / f".{OLD.file_name}.4711").write_text("echo o")
    opened(folder)
    assert list(folder.iterdir()) == []


def test_an_old_version_that_cannot_be_removed_fails_no_run(folder: Path) -> None:
    files = opened(folder)
    with files.held(OLD) as path:
        pass
    path.unlink()
    path.mkdir()
    with files.held(NEW):
        pass
    path.rmdir()
    with files.held(NEW):
        pass
    assert [file.name for file in folder.iterdir()] == [NEW.file_name]
