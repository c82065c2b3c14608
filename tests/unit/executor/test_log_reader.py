import tracemalloc
from pathlib import Path

import pytest

from jobwheel.executor.log_reader import MOST_BYTES, MOST_LINES, RunLogReader, missing_page
from jobwheel.wire.codec import encode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "7.log"


def read(
    path: Path, from_line: int = 1, *, over: bool = True, reader: RunLogReader | None = None
) -> tuple[int, int, str, bool]:
    page = (reader or RunLogReader()).read(str(path), from_line, over=over)
    return page.from_line, page.to_line, page.content or "", page.is_end


def test_the_whole_of_a_short_log(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    assert read(path) == (1, 3, "one\ntwo\nthree\n", True)


def test_from_a_line_on(path: Path) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    assert read(path, 3) == (3, 3, "three\n", True)


@pytest.mark.parametrize("from_line", [4, 5, 100])
def test_beyond_the_end_is_nothing_new(path: Path, from_line: int) -> None:
    path.write_bytes(b"one\ntwo\nthree\n")
    assert read(path, from_line) == (from_line, from_line - 1, "", True)
    assert read(path, from_line, over=False) == (from_line, from_line - 1, "", False)


def test_an_empty_log(path: Path) -> None:
    path.touch()
    assert read(path) == (1, 0, "", True)
    assert read(path, over=False) == (1, 0, "", False)


def test_a_line_that_is_being_written_waits_for_its_end(path: Path) -> None:
    reader = RunLogReader()
    path.write_bytes(b"one\ntw")
    assert read(path, over=False, reader=reader) == (1, 1, "one\n", False)
    assert read(path, 2, over=False, reader=reader) == (2, 1, "", False)
    path.write_bytes(b"one\ntwo\n")
    assert read(path, 2, over=False, reader=reader) == (2, 2, "two\n", False)


def test_a_last_line_without_an_end_counts_when_the_run_is_over(path: Path) -> None:
    path.write_bytes(b"one\ntw")
    assert read(path) == (1, 2, "one\ntw\n", True)


def test_a_page_has_at_most_a_thousand_lines(path: Path) -> None:
    path.write_bytes(b"".join(b"line %d\n" % number for number in range(1, 2501)))
    reader = RunLogReader()
    first, last, content, end = read(path, reader=reader)
    assert (first, last, end) == (1, MOST_LINES, False)
    assert content.endswith("line 1000\n")
    assert read(path, 1001, reader=reader)[:2] == (1001, 2000)
    first, last, content, end = read(path, 2001, reader=reader)
    assert (first, last, end) == (2001, 2500, True)
    assert content.startswith("line 2001\n")


def test_exactly_a_thousand_lines_are_the_end(path: Path) -> None:
    path.write_bytes(b"x\n" * MOST_LINES)
    assert read(path)[1::2] == (MOST_LINES, True)


def test_a_page_has_at_most_a_mebibyte(path: Path) -> None:
    line = b"y" * 9_999 + b"\n"
    path.write_bytes(line * 500)
    reader = RunLogReader()
    seen, next_line, end = 0, 1, False
    while not end:
        first, last, content, end = read(path, next_line, reader=reader)
        assert first == next_line
        assert len(content) <= MOST_BYTES
        assert content == line.decode() * (last - first + 1)
        seen, next_line = last, last + 1
    assert seen == 500


@pytest.mark.parametrize("tail", [b"\nafter\n", b""])
def test_a_line_of_more_than_a_mebibyte_is_cut_with_a_mark(path: Path, tail: bytes) -> None:
    path.write_bytes(b"before\n" + b"z" * (3 * MOST_BYTES) + tail)
    reader = RunLogReader()
    assert read(path, reader=reader) == (1, 1, "before\n", False)
    first, last, content, _ = read(path, 2, reader=reader)
    assert (first, last) == (2, 2)
    assert content.startswith("z" * MOST_BYTES)
    assert content.endswith("was cut here)\n")
    assert len(content) < MOST_BYTES + 100
    if tail:
        assert read(path, 3, reader=reader) == (3, 3, "after\n", True)
        assert read(path, 3) == (3, 3, "after\n", True)


def test_a_long_line_that_is_being_written_waits_for_its_end(path: Path) -> None:
    path.write_bytes(b"z" * (2 * MOST_BYTES))
    assert read(path, over=False) == (1, 0, "", False)


def test_bytes_that_are_not_utf8_are_replaced(path: Path) -> None:
    path.write_bytes(b"a\xff\xfeb\n\xe4\xb8\n")
    assert read(path)[2] == "a\ufffd\ufffdb\n\ufffd\n"


def test_only_line_feeds_end_lines(path: Path) -> None:
    path.write_bytes("a\rb\x0cc\x85d\u2028e\n".encode())
    assert read(path)[:3] == (1, 1, "a\rb\x0cc\x85d\u2028e\n")


def big_file(path: Path, lines: int, line_bytes: int) -> None:
    """Lines that are all zeros but for their break: most of it is a hole, which takes no room on the disk."""
    with path.open("wb") as file:
        for number in range(1, lines + 1):
            file.seek(number * line_bytes - 1)
            file.write(b"\n")


def test_after_one_look_at_the_end_every_line_of_a_big_log_is_near(path: Path, bytes_read: list[int]) -> None:
    big_file(path, lines=2048, line_bytes=128 * 1024)
    reader = RunLogReader()
    assert read(path, 2048, reader=reader)[:2] == (2048, 2048)
    assert sum(bytes_read) < 1.02 * 2**28
    for line in (2048, 1, 1025, 1700, 2, 2049):
        bytes_read.clear()
        first, last, _, end = read(path, line, reader=reader)
        assert first == line
        assert (last == line) is (line <= 2048)
        assert end is (line >= 2048)
        assert sum(bytes_read) <= 3 * MOST_BYTES


def test_what_was_added_to_a_big_file_is_read_without_a_scan_of_the_rest(path: Path, bytes_read: list[int]) -> None:
    big_file(path, lines=512, line_bytes=128 * 1024)
    reader = RunLogReader()
    read(path, 513, over=False, reader=reader)
    bytes_read.clear()
    with path.open("ab") as file:
        file.write(b"added\n")
    assert read(path, 513, over=False, reader=reader) == (513, 513, "added\n", False)
    assert sum(bytes_read) <= 3 * MOST_BYTES


def test_a_line_that_grows_and_grows_is_not_scanned_each_time(path: Path, bytes_read: list[int]) -> None:
    with path.open("wb") as file:
        file.truncate(64 * MOST_BYTES)
    reader = RunLogReader()
    for _ in range(3):
        bytes_read.clear()
        assert read(path, over=False, reader=reader) == (1, 0, "", False)
    assert sum(bytes_read) <= 3 * MOST_BYTES


def test_a_file_that_was_cut_is_read_anew(path: Path) -> None:
    reader = RunLogReader()
    path.write_bytes(b"x\n" * MOST_BYTES)
    assert read(path, MOST_BYTES, reader=reader)[2] == "x\n"
    path.write_bytes(b"one\ntwo\n")
    assert read(path, 2, reader=reader) == (2, 2, "two\n", True)
    path.write_bytes(b"".join(b"%09d\n" % number for number in range(1, 600_001)))
    assert read(path, 600_000, reader=reader)[2] == "000600000\n"


@pytest.mark.parametrize("line", [b"\n", b"\x00" * 500 + b"\n", b"\x00" * 900_000 + b"\n", b"\xff" * 700_000 + b"\n"])
def test_a_reply_is_bounded_as_it_is_carried(path: Path, line: bytes) -> None:
    path.write_bytes(line * (3 * MOST_BYTES // len(line)))
    lines, most, reader = 0, path.stat().st_size // len(line), RunLogReader()
    for _ in range(3):
        page = reader.read(str(path), lines + 1, over=True)
        assert page.to_line > lines
        lines = page.to_line
        assert len(encode(page.content)) < 1.01 * MOST_BYTES
    last = reader.read(str(path), most, over=True)
    assert (last.from_line, last.to_line, last.is_end) == (most, most, True)


def test_a_file_that_was_replaced_is_read_anew(path: Path) -> None:
    reader = RunLogReader()
    path.write_bytes(b"one\ntwo\n")
    read(path, reader=reader)
    other = path.with_suffix(".new")
    other.write_bytes(b"a\nb\nlonger\n")
    other.replace(path)
    assert read(path, 3, reader=reader)[2] == "longer\n"


def test_a_big_file_is_not_read_into_memory(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(64):
            file.write((b"x" * 127 + b"\n") * 8192)
        file.write(b"last\n")
    tracemalloc.start()
    assert read(path, 64 * 8192 + 1)[2] == "last\n"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * MOST_BYTES


def test_a_missing_log_is_one_line_that_says_so() -> None:
    page = missing_page(5, 77)
    assert (page.from_line, page.to_line, page.is_end) == (5, 5, True)
    assert "77" in (page.content or "")
