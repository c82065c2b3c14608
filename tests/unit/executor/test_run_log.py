import contextlib
import errno
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobwheel.executor.errors import StorageError
from jobwheel.executor.log_capture import LogCapture, RunLogger, RunLogHandler, render
from jobwheel.executor.run_log import RunLog, RunLogFolder, is_storable, stamp
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.forks import FORK_DURING

NOON_MS = 1_795_651_200_000  # 2026-11-26 00:00 UTC


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def new_log(folder: Path, log_id: int = 7) -> RunLog:
    return RunLogFolder(folder, FakeClock(NOON_MS)).create(log_id, NOON_MS)


def test_the_day_is_that_of_the_hosts_zone(zone: str, tmp_path: Path) -> None:
    path = RunLogFolder(tmp_path, FakeClock()).path(7, NOON_MS)
    day = "2026-11-25" if zone == "America/New_York" else "2026-11-26"
    assert path == f"{tmp_path}/{day}/7.log"


def test_lines_are_stamped_in_the_hosts_zone(zone: str) -> None:
    hour = {"UTC": "2026-11-26 00", "Asia/Shanghai": "2026-11-26 08", "America/New_York": "2026-11-25 19"}[zone]
    assert stamp(NOON_MS + 1_007) == f"{hour}:00:01.007"


@pytest.mark.parametrize("shift", [-86_400_000, 0, 86_400_000])
def test_a_log_is_found_in_the_neighbouring_days(tmp_path: Path, shift: int) -> None:
    folder = RunLogFolder(tmp_path, FakeClock())
    log = folder.create(7, NOON_MS + shift)
    log.close()
    assert folder.find(7, NOON_MS) == log.path
    assert folder.find(8, NOON_MS) is None
    assert folder.find(7, NOON_MS + 3 * 86_400_000) is None


@pytest.mark.parametrize("date", [-1, -(10**30), 253_402_300_799_000, 10**30])
def test_dates_that_no_folder_can_be_named_after(date: int) -> None:
    assert not is_storable(date)


def test_dates_at_the_bounds(tmp_path: Path) -> None:
    for date in (0, 253_402_214_400_000):
        assert is_storable(date)
        assert RunLogFolder(tmp_path, FakeClock()).find(1, date) is None


def test_a_log_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"):
        new_log(tmp_path / "file")


def test_lines_have_time_level_and_text(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.write("INFO", "eins 中文 \ud800")
    log.park()
    log.write("ERROR", "two\nlines")
    log.close()
    log.write("INFO", "too late")
    assert re.sub(rb"(?m)^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", b"T ", Path(log.path).read_bytes()).decode() == (
        "T [INFO] eins 中文 \\ud800\nT [ERROR] two\nlines\n"
    )


def test_a_disk_that_refuses_costs_the_lines_only(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = new_log(tmp_path)
    log.park()
    Path(log.path).unlink()
    Path(log.path).mkdir()
    log.write("INFO", "lost")
    log.write("INFO", "lost too")
    log.close()
    assert caplog.text.count("run_log.cannot_write") == 1


@pytest.mark.parametrize("end", ["park", "close", "write"])
def test_a_file_that_fails_as_it_is_closed_is_closed_once(
    end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a network's disk that is full: its number is another file's by the time of a second try."""
    log, close, closed = new_log(tmp_path), os.close, list[int]()

    def failing(descriptor: int) -> None:
        closed.append(descriptor)
        close(descriptor)
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    def full(*_: object) -> int:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", failing)
        if end == "write":
            patched.setattr(os, "write", full)
            log.write("INFO", "lost")
        else:
            getattr(log, end)()
        log.close()
        log.close()
    assert len(closed) == 1
    assert caplog.text.count("run_log.cannot_write") == 1


def test_a_child_that_is_forked_while_a_line_is_written_can_write(tmp_path: Path) -> None:
    program = f"""{FORK_DURING}
import pathlib, sys
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.clock import SystemClock

log = RunLogFolder(pathlib.Path(sys.argv[1]), SystemClock()).create(7, 0)
write = lambda whose: log.write("INFO", whose + "'s line")
print(fork_during(os, "write", lambda: write("the parent"), lambda: write("the child") or 0), end=" ")
print(pathlib.Path(log.path).read_text())
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout
    assert told.startswith("0 ")
    assert [line.partition("] ")[2] for line in told.splitlines()[:2]] == ["the child's line", "the parent's line"]


def test_a_discarded_log_leaves_no_file(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.discard()
    assert not Path(log.path).exists()


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    before = open_files()
    for number in range(5):
        log = new_log(tmp_path, number)
        log.write("INFO", "x")
        log.close()
        log.close()
    assert open_files() == before


def test_a_bad_log_call_is_shown_and_raises_nothing(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    RunLogger(log).info("%d apples", "many")
    log.close()
    assert "%d apples (its arguments do not fit: TypeError)" in Path(log.path).read_text()


def test_a_runs_logger_writes_every_level_to_its_log_and_shows_the_application_what_it_wants(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = new_log(tmp_path)
    with caplog.at_level(logging.WARNING):
        RunLogger(log).debug("small")
        RunLogger(log).warning("big")
    log.close()
    text = Path(log.path).read_text()
    assert "[DEBUG] small" in text
    assert "[WARNING] big" in text
    assert [record.getMessage() for record in caplog.records] == ["big"]


def test_what_two_handlers_see_is_written_once(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    record = logging.LogRecord("x", logging.INFO, "f", 1, "once", None, None)
    for handler in (RunLogHandler(lambda: log), RunLogHandler(lambda: log)):
        handler.emit(record)
    log.close()
    assert Path(log.path).read_text().count("once") == 1


def test_a_traceback_is_part_of_the_text() -> None:
    with pytest.raises(ValueError, match="invalid literal") as caught:
        int("bad")
    info = (caught.type, caught.value, caught.tb)
    text = render(logging.LogRecord("x", logging.ERROR, "f", 1, "failed", None, info))
    assert text.startswith("failed\nTraceback")
    assert text.endswith("invalid literal for int() with base 10: 'bad'")


@contextlib.contextmanager
def installed_in_an_application_without_logging() -> Iterator[None]:
    """As in a program that never touched `logging`."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []
    root.setLevel(logging.WARNING)
    capture = LogCapture(lambda: None)
    capture.install()
    try:
        yield
    finally:
        capture.remove()
        left = (root.handlers[:], root.level)
        root.handlers[:] = handlers
        root.setLevel(level)
    assert left == ([], logging.WARNING)


def test_without_logging_set_up_info_is_let_through_while_an_executor_works() -> None:
    with installed_in_an_application_without_logging():
        assert logging.getLogger("any").isEnabledFor(logging.INFO)


def test_without_logging_set_up_warnings_still_reach_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with installed_in_an_application_without_logging():
        logging.getLogger("any").warning("seen")
        logging.getLogger("any").info("not seen")
    assert capsys.readouterr().err == "seen\n"


def test_a_handler_of_the_application_sees_warnings_alone(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: seen.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("tests.own")
    logger.addHandler(handler)
    with installed_in_an_application_without_logging():
        logger.warning("seen")
    logger.removeHandler(handler)
    assert seen == ["seen"]
    assert capsys.readouterr().err == ""


def test_a_level_that_the_application_chose_stays() -> None:
    root = logging.getLogger()
    level = root.level
    capture = LogCapture(lambda: None)
    capture.install()
    assert root.handlers
    assert root.level == level
    capture.remove()
    assert root.level == level
