"""Where the lines of a file begin: a table of some of them, made while the file is read."""

import os
import threading
from array import array
from bisect import bisect_left
from typing import Final

CHUNK_BYTES: Final = 1024 * 1024
MOST_MARKS: Final = 2048


class LineIndex:
    """Finds lines of one file that only grows. Safe to use from any thread: one scans, the others wait for it.

    Every mebibyte that was scanned leaves a mark: how many lines begin before it. When there are 2,048 of them every
    other one goes, so that memory stays bounded and a line of a file of 1 GB is at most a mebibyte from a mark.
    """

    def __init__(self, inode: int) -> None:
        self.inode = inode
        self._lock = threading.Lock()
        self._lines = array("q", [1])
        self._offsets = array("q", [0])
        self._spacing = CHUNK_BYTES

    @property
    def covered(self) -> int:
        """How many bytes from the beginning on the marks stand in."""
        with self._lock:
            return self._offsets[-1]

    @property
    def marks(self) -> int:
        """How many marks there are."""
        with self._lock:
            return len(self._lines)

    def seek(self, descriptor: int, line: int) -> int | None:
        """The offset at which `line` (counted from 1) begins, None if the file ends before it.

        Raises:
            OSError: the file cannot be read.
        """
        if line == 1:
            return 0
        with self._lock:
            # The last mark that surely stands before the line's beginning, and not within the line.
            mark = bisect_left(self._lines, line) - 1
            return self._scan(descriptor, self._lines[mark], self._offsets[mark], line)

    def _scan(self, descriptor: int, at: int, offset: int, line: int) -> int | None:
        while chunk := os.pread(descriptor, CHUNK_BYTES, offset):
            breaks = chunk.count(b"\n")
            if at + breaks >= line:
                return offset + _after_break(chunk, line - at)
            at += breaks
            offset += len(chunk)
            if offset >= self._offsets[-1] + self._spacing:
                self._mark(at, offset)
        return None

    def _mark(self, line: int, offset: int) -> None:
        self._lines.append(line)
        self._offsets.append(offset)
        if len(self._lines) > MOST_MARKS:
            self._lines = self._lines[::2]
            self._offsets = self._offsets[::2]
            self._spacing *= 2


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
