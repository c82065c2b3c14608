import os
from collections.abc import Callable
from pathlib import Path

import pytest

from jobwheel.executor import log_index
from jobwheel.executor.log_index import KEEP_BYTES, LineIndex
from jobwheel.executor.log_reader import RunLogReader
from jobwheel.executor.run_log import RunLog, RunLogFolder
from jobwheel.kernel.fake_clock import FakeClock

MIB = 1024 * 1024
LINE_BYTES = 64 * 1024
STAMP_BYTES = len("2026-11-26 00:00:00.000 [INFO] \n")
# What a look may read: what lies between two marks, a page, and a little to see whether marks are true.
NEAR = 2 * MIB + 1024


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "7.log"


def new_log(folder: Path, log_id: int = 7) -> RunLog:
    return RunLogFolder(folder, FakeClock()).create(log_id, 0)


def write_lines(log: RunLog, first: int, last: int) -> None:
    """Each of 64 KiB, with its number at its end."""
    for number in range(first, last + 1):
        log.write("INFO", f"{number:>{LINE_BYTES - STAMP_BYTES}}")


def line_at(log: RunLog, line: int, reader: RunLogReader | None = None) -> str:
    """The end of a line, as a reader who knows nothing sees it; nothing if the log ends before."""
    page = (reader or RunLogReader()).read(log.path, line, over=False)
    assert page.from_line == line
    return (page.content or "").split("\n")[0][-9:].strip()


def index_of(log: RunLog) -> Path:
    return Path(f"{log.path}.index")


def write_file(path: Path, lines: int, line_bytes: int) -> None:
    """Lines that are zeros but for number and break: most of the file is a hole, which takes no room on the disk."""
    with path.open("wb") as file:
        for number in range(1, lines + 1):
            file.seek(number * line_bytes - 10)
            file.write(b"%09d\n" % number)


def test_the_first_look_into_a_log_that_is_being_written_is_a_near_one(tmp_path: Path, bytes_read: list[int]) -> None:
    log = new_log(tmp_path)
    write_lines(log, 1, 1030)
    for line in (1030, 1, 1031, 515, 2):
        bytes_read.clear()
        assert line_at(log, line) == (str(line) if line <= 1030 else "")
        assert sum(bytes_read) <= KEEP_BYTES + NEAR
    log.close()


def test_so_it_is_after_a_crash_and_when_the_log_is_gone_on_with(tmp_path: Path, bytes_read: list[int]) -> None:
    write_lines(new_log(tmp_path), 1, 500)
    log = new_log(tmp_path)
    bytes_read.clear()
    write_lines(log, 501, 600)
    # Neither does who writes look through what was there before.
    assert sum(bytes_read) <= 100 * LINE_BYTES + 2 * KEEP_BYTES
    for line in (600, 300, 450):
        bytes_read.clear()
        assert line_at(log, line) == str(line)
        assert sum(bytes_read) <= 2 * KEEP_BYTES + NEAR
    log.close()


def test_a_reader_that_has_followed_a_log_learns_what_was_marked_since(tmp_path: Path, bytes_read: list[int]) -> None:
    log, reader = new_log(tmp_path), RunLogReader()
    write_lines(log, 1, 20)
    assert line_at(log, 20, reader) == "20"
    write_lines(log, 21, 1000)
    bytes_read.clear()
    assert line_at(log, 1000, reader) == "1000"
    assert sum(bytes_read) <= KEEP_BYTES + NEAR
    log.close()


def test_a_small_log_has_no_index_and_is_not_read_by_who_writes_it(tmp_path: Path, bytes_read: list[int]) -> None:
    log = new_log(tmp_path)
    write_lines(log, 1, 63)
    assert not bytes_read
    assert line_at(log, 63) == "63"
    assert not index_of(log).exists()
    write_lines(log, 64, 64)
    assert index_of(log).exists()
    log.close()


def test_lines_of_two_processes_in_one_log(tmp_path: Path) -> None:
    log, other = new_log(tmp_path), new_log(tmp_path)
    for number in range(1, 301):
        write_lines(log if number % 3 else other, number, number)
    assert [line_at(log, line) for line in (300, 150, 299, 2)] == ["300", "150", "299", "2"]
    for each in (log, other):
        each.close()


def test_a_log_without_an_index_is_looked_through_once_by_whatever_process(path: Path, bytes_read: list[int]) -> None:
    write_file(path, lines=800, line_bytes=128 * 1024)
    assert RunLogReader().read(str(path), 800, over=True).content == "\x00" * (128 * 1024 - 10) + "000000800\n"
    assert sum(bytes_read) <= 101 * MIB
    for line in (800, 400, 799):
        bytes_read.clear()
        page = RunLogReader().read(str(path), line, over=True)
        assert (page.content or "").split("\n")[0].endswith(f"{line:09d}")
        assert sum(bytes_read) <= 2 * KEEP_BYTES + NEAR


def as_if_the_log_lost_its_end(log: Path, _: Path) -> None:
    os.truncate(log, 20 * MIB)
    with log.open("ab") as file:
        file.write(b"".join(b"new %0500d\n" % number for number in range(50_000)))


def as_if_the_log_was_made_anew(log: Path, _: Path) -> None:
    log.write_bytes(b"".join(b"another %0500d\n" % number for number in range(90_000)))


def as_if_the_log_ends_in_zeros(log: Path, _: Path) -> None:
    size = log.stat().st_size
    os.truncate(log, 30 * MIB)
    os.truncate(log, size)


def as_if_the_log_is_shorter(log: Path, _: Path) -> None:
    os.truncate(log, 21 * MIB - 5)


def as_if_the_index_was_torn(_: Path, index: Path) -> None:
    """Amid a line, so that the next one has another number."""
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join([*lines[:10], lines[10][:1], *lines[12:]]))


def as_if_the_index_was_torn_by_halves(_: Path, index: Path) -> None:
    os.truncate(index, index.stat().st_size // 2 + 3)


def as_if_the_index_is_another_logs(_: Path, index: Path) -> None:
    index.write_bytes(b"".join(b"%d %d 0badc0de\n" % (number * 7, number * MIB) for number in range(1, 60)))


def as_if_the_index_is_no_index(_: Path, index: Path) -> None:
    index.write_bytes(os.urandom(5000) + b"\n1 2 3\n-1 5 00000000\n9 99999999999999999999999 00000000\nx y 0000000z\n")


FAULTS = [
    as_if_the_log_lost_its_end,
    as_if_the_log_was_made_anew,
    as_if_the_log_ends_in_zeros,
    as_if_the_log_is_shorter,
    as_if_the_index_was_torn,
    as_if_the_index_was_torn_by_halves,
    as_if_the_index_is_another_logs,
    as_if_the_index_is_no_index,
]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("knows", [False, True])
def test_a_wrong_index_misleads_nobody_and_is_mended(
    path: Path, bytes_read: list[int], fault: Callable[[Path, Path], None], *, knows: bool
) -> None:
    write_file(path, lines=400, line_bytes=100 * 1024)
    reader = RunLogReader()
    reader.read(str(path), 401, over=True)
    fault(path, path.with_name("7.log.index"))
    lines = path.read_bytes().split(b"\n")
    looks = (len(lines) - 1, 5, len(lines) // 2, len(lines) - 2, len(lines) // 3, len(lines) + 1)
    # Who has marks of its own may not look at the file beside the log at all; the next one does.
    for each in (reader, RunLogReader()) if knows else (RunLogReader(),):
        for line in looks:
            page = each.read(str(path), line, over=True)
            expected = lines[line - 1].decode() if line <= len(lines) else ""
            assert (page.content or "").split("\n")[0] == expected
    for line in looks:
        bytes_read.clear()
        RunLogReader().read(str(path), line, over=True)
        assert sum(bytes_read) <= 2 * KEEP_BYTES + NEAR


def test_a_folder_that_cannot_be_written_to_costs_the_index_alone(path: Path) -> None:
    write_file(path, lines=400, line_bytes=100 * 1024)
    path.with_name("7.log.index").mkdir()
    reader = RunLogReader()
    for line in (400, 200):
        assert (reader.read(str(path), line, over=True).content or "").split("\n")[0].endswith(f"{line:09d}")


def test_marks_are_bounded_and_right(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a log of 9 GB, in which the sixteenth of a kibibyte stands for a mebibyte."""
    monkeypatch.setattr(log_index, "CHUNK_BYTES", 64)
    path.write_bytes(b"".join(b"%d\n" % number for number in range(1, 100_001)))
    index = LineIndex(str(path))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert index.seek(descriptor, 100_001) == path.stat().st_size
        assert index.seek(descriptor, 100_002) is None
        assert 1024 < index.marks <= 1024 * (1 + 2.3)
        for line in range(1, 100_001, 777):
            offset = index.seek(descriptor, line)
            assert offset is not None
            assert os.pread(descriptor, 6, offset).split(b"\n")[0] == b"%d" % line
    finally:
        os.close(descriptor)
