"""The file beside a big log that says where some of its lines are, and outlives the process that made it."""

import os
import zlib
from collections.abc import Iterable
from typing import Final, NamedTuple

SUFFIX: Final = ".index"
_MOST_BYTES: Final = 1024 * 1024
_END_BYTES: Final = 256
_CHECKED_BYTES: Final = 64
_FIELDS: Final = 3
_CHECK_DIGITS: Final = 8
_ADD: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_REPLACE: Final = os.O_WRONLY | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
_MODE: Final = 0o640


class Mark(NamedTuple):
    """The byte at `offset` belongs to line `line`, counted from 1.

    `check` is made of both and of the 64 bytes before the offset: it tells a mark that is not true of the file, which
    may have been cut or lost its end in a crash, or that was itself torn while it was written.
    """

    line: int
    offset: int
    check: int


START: Final = Mark(1, 0, 0)


def make_mark(descriptor: int, line: int, offset: int) -> Mark:
    """The mark of a place in an open log.

    Raises:
        OSError: the log cannot be read.
    """
    begin = max(0, offset - _CHECKED_BYTES)
    before = os.pread(descriptor, offset - begin, begin)
    return Mark(line, offset, zlib.crc32(b"%d %d " % (line, offset) + before))


def is_true(descriptor: int, mark: Mark) -> bool:
    """Whether an open log is the one, or has become what the one was going to be, that the mark was made of.

    Raises:
        OSError: the log cannot be read.
    """
    return mark == START or mark == make_mark(descriptor, mark.line, mark.offset)


class MarkFile:
    """`{log}.index`: one line for each mark, `line offset check`, mostly by rising offsets.

    It is a help and never the truth: each mark is to be checked against the log before it is used, what cannot be read
    is passed over, and without the file the log is merely read more slowly. Whoever has found where lines are may add
    to it, the process that writes the log as well as one that reads it: marks that are there twice do no harm.

    Args:
        log_path: the log that it belongs to.
    """

    def __init__(self, log_path: str) -> None:
        self._path = log_path + SUFFIX

    def load(self) -> list[Mark]:
        """The marks by rising offsets; none if there is no file, or it cannot be read."""
        return sorted(_parsed(self._read(0, _MOST_BYTES)), key=lambda mark: mark.offset)

    def last_offset(self) -> int:
        """How far the marks go that were added last; 0 if there are none."""
        return max((mark.offset for mark in _parsed(self._read(-_END_BYTES, _END_BYTES))), default=0)

    def _read(self, offset: int, length: int) -> bytes:
        """So many bytes from an offset on, a negative one being counted from the end."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return b""
        try:
            begin = offset if offset >= 0 else max(0, os.fstat(descriptor).st_size + offset)
            return os.pread(descriptor, length, begin)
        except OSError:
            return b""
        finally:
            os.close(descriptor)

    def add(self, marks: Iterable[Mark]) -> None:
        """Append marks.

        Raises:
            OSError: the file cannot be written.
        """
        # On a line of its own: behind one that is torn, digits would become those of another number.
        self._write(b"\n" + _lines(marks), _ADD)

    def replace(self, marks: Iterable[Mark]) -> None:
        """Have these marks alone, if there is a file.

        Raises:
            OSError: there is none, or it cannot be written.
        """
        self._write(_lines(marks), _REPLACE)

    def _write(self, data: bytes, flags: int) -> None:
        descriptor = os.open(self._path, flags, _MODE)
        try:
            # At one go, so that others who add find whole lines. One that is torn by a full disk is passed over.
            os.write(descriptor, data)
        finally:
            os.close(descriptor)


def _lines(marks: Iterable[Mark]) -> bytes:
    return b"".join(b"%d %d %08x\n" % mark for mark in marks)


def _parsed(data: bytes) -> list[Mark]:
    """The marks that can be read."""
    marks: list[Mark] = []
    for text in data.split(b"\n"):
        fields = text.split(b" ")
        if len(fields) != _FIELDS or len(fields[2]) != _CHECK_DIGITS:
            continue
        try:
            mark = Mark(int(fields[0]), int(fields[1]), int(fields[2], 16))
        except ValueError:
            continue
        if mark.line > 0 and 0 < mark.offset < 2**63 and mark.line < 2**63:
            marks.append(mark)
    return marks
