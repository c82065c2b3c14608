"""Where the lines of a log begin: a table of some of them, made while it is read or written."""

import contextlib
import os
import threading
from bisect import bisect_left
from typing import Final

from jobwheel.executor.log_marks import START, Mark, MarkFile, is_true, make_mark

CHUNK_BYTES: Final = 1024 * 1024
KEEP_BYTES: Final = 4 * 1024 * 1024
"""After how many bytes the writer of a log keeps its marks; a log that is smaller has no file beside it."""

# How much without kept marks a reader puts down to a writer that is at work.
_WRITERS_BYTES: Final = 2 * KEEP_BYTES
_SHARE_BITS: Final = 10
_NO_LINE: Final = 2**63


class LineIndex:
    """Finds lines of one log that only grows. Safe to use from any thread: one scans, the others wait for it.

    Every mebibyte that was scanned leaves a mark, in a log beyond 1 GiB every thousandth of what lies before: a line of
    a log of 100 GB is at most 100 MB from a mark, and there are some 6,000 of them. Those of a big log are kept in a
    file beside it, so that the first look far into it, by whatever process, is as quick as all others.

    A log that was cut or replaced, by whatever means, is noticed at the next look: its marks are no longer true of it.

    Args:
        path: the log.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = MarkFile(path)
        self._lock = threading.Lock()
        self._marks = [START]
        self._kept_to = 0
        self._is_file_wrong = False

    @property
    def marks(self) -> int:
        """How many marks there are."""
        with self._lock:
            return len(self._marks)

    def seek(self, descriptor: int, line: int) -> int | None:
        """The offset at which `line` (counted from 1) begins, None if the log ends before it.

        Raises:
            OSError: the log cannot be read.
        """
        if line == 1:
            return 0
        with self._lock:
            if line > self._marks[-1].line:
                self._take_in(os.fstat(descriptor).st_size)
            offset = self._scan(descriptor, self._last_before(descriptor, line), line)
            self._keep(_WRITERS_BYTES)
            return offset

    def follow(self) -> None:
        """Mark what has been written by now, and keep that. Never raises: without marks a log is only read slower."""
        with self._lock, contextlib.suppress(OSError):
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                self._take_in(os.fstat(descriptor).st_size)
                self._scan(descriptor, self._last_before(descriptor, _NO_LINE), _NO_LINE)
            finally:
                os.close(descriptor)
            self._keep(1)

    def _take_in(self, size: int) -> None:
        """Learn what others have kept, if that can be much more than is known here."""
        if size - self._marks[-1].offset < _WRITERS_BYTES:
            return
        for mark in self._file.load():
            if mark.offset <= size and mark.line >= self._marks[-1].line and self._is_due(mark.offset):
                self._marks.append(mark)
        self._kept_to = max(self._kept_to, self._marks[-1].offset)

    def _last_before(self, descriptor: int, line: int) -> Mark:
        """The last mark that surely stands before the line's beginning, and not within the line."""
        # The last one of all tells whether the log still is what it was.
        self._last_true(descriptor, len(self._marks) - 1)
        position = bisect_left(self._marks, line, key=lambda mark: mark.line) - 1
        return self._last_true(descriptor, position)

    def _last_true(self, descriptor: int, position: int) -> Mark:
        """The mark at a position; if it is not true of the log, the next before it that is, and none stays behind."""
        last = position
        while not is_true(descriptor, self._marks[last]):
            last -= 1
        if last < position:
            del self._marks[last + 1 :]
            self._is_file_wrong = True
        return self._marks[last]

    def _scan(self, descriptor: int, mark: Mark, line: int) -> int | None:
        at, offset = mark.line, mark.offset
        while chunk := os.pread(descriptor, CHUNK_BYTES, offset):
            breaks = chunk.count(b"\n")
            if at + breaks >= line:
                return offset + _after_break(chunk, line - at)
            at += breaks
            offset += len(chunk)
            if self._is_due(offset):
                self._marks.append(make_mark(descriptor, at, offset))
        return None

    def _is_due(self, offset: int) -> bool:
        last = self._marks[-1].offset
        return offset >= last + max(CHUNK_BYTES, last >> _SHARE_BITS)

    def _keep(self, least_bytes: int) -> None:
        """Put marks into the file if they go so much further than those that are there."""
        last = self._marks[-1].offset
        if not self._is_file_wrong and last - self._kept_to < least_bytes:
            return
        with contextlib.suppress(OSError):
            if self._is_file_wrong:
                self._is_file_wrong = False
                self._file.replace(self._marks[1:])
            elif last - (kept_to := self._file.last_offset()) >= least_bytes:
                self._file.add(mark for mark in self._marks if mark.offset > kept_to)
        # Also if it cannot be written: that is not tried again at each look.
        self._kept_to = last


def _after_break(chunk: bytes, number: int) -> int:
    """The position behind the `number`-th line break of a chunk that has so many.

    By halves: a loop over a million empty lines would take most of a second.
    """
    low, high, before = 0, len(chunk), 0
    while high - low > 1:
        middle = (low + high) // 2
        breaks = chunk.count(b"\n", low, middle)
        if before + breaks >= number:
            high = middle
        else:
            low, before = middle, before + breaks
    return high
