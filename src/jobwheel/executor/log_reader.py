"""Reads the log of a run by line, in bounded pieces."""

import os
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from jobwheel.wire.messages import LogPage

MOST_LINES: Final = 1000
MOST_BYTES: Final = 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_MOST_POSITIONS: Final = 256
_CUT_MARK: Final = " … (the line is longer and was cut here)"


@dataclass(frozen=True, slots=True)
class _Position:
    """Where in a file a line begins."""

    line: int
    offset: int
    inode: int


class RunLogReader:
    """Reads pages, and remembers where the last page of a file ended, so that who reads on does not begin anew.

    Safe to use from any thread; a big file is read in pieces, never whole.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: OrderedDict[str, _Position] = OrderedDict()

    def read(self, path: str, from_line: int, *, over: bool) -> LogPage:
        """The lines from `from_line` (counted from 1) on: at most 1,000 lines and 1 MiB, at least one line if any.

        Bytes that are not UTF-8 become U+FFFD.

        Args:
            path: the file.
            from_line: the first line wanted.
            over: nothing will be written any more; then a last line without an end counts, and `is_end` may be true.

        Raises:
            OSError: the file cannot be read.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            inode = os.fstat(descriptor).st_ino
            start = self._seek(descriptor, self._nearest(path, from_line, inode), from_line)
            if start.line < from_line:
                return LogPage(from_line, from_line - 1, "", over)
            page = _Page(descriptor, start.offset, over=over)
        finally:
            os.close(descriptor)
        self._remember(path, _Position(from_line + len(page.lines), page.end, inode))
        return LogPage(from_line, from_line - 1 + len(page.lines), "".join(page.lines), over and page.at_end)

    def _nearest(self, path: str, from_line: int, inode: int) -> _Position:
        with self._lock:
            known = self._positions.get(path)
        if known is not None and known.inode == inode and known.line <= from_line:
            return known
        return _Position(1, 0, inode)

    def _remember(self, path: str, position: _Position) -> None:
        with self._lock:
            self._positions[path] = position
            self._positions.move_to_end(path)
            if len(self._positions) > _MOST_POSITIONS:
                self._positions.popitem(last=False)

    def _seek(self, descriptor: int, start: _Position, line: int) -> _Position:
        """Go on from `start` to where `line` begins; an earlier line if the file ends before it."""
        at, offset = start.line, start.offset
        while at < line:
            chunk = os.pread(descriptor, _CHUNK_BYTES, offset)
            if not chunk:
                break
            breaks = chunk.count(b"\n")
            if at + breaks < line:
                at += breaks
                offset += len(chunk)
            else:
                for _ in range(line - at):
                    skipped = chunk.index(b"\n") + 1
                    chunk = chunk[skipped:]
                    offset += skipped
                at = line
        return _Position(at, offset, start.inode)


class _Page:
    """The lines of one reply, decoded, each with its line break."""

    def __init__(self, descriptor: int, offset: int, *, over: bool) -> None:
        self.lines: list[str] = []
        self.end = offset
        self.at_end = False
        data = os.pread(descriptor, MOST_BYTES, offset)
        whole = data.split(b"\n")
        rest = whole.pop()
        for line in whole[:MOST_LINES]:
            self._add(line, len(line) + 1)
        if len(whole) > MOST_LINES:
            return
        if len(data) == MOST_BYTES and whole:
            return  # the rest may go on beyond what was read: the next page begins with it
        if len(data) == MOST_BYTES:
            self._add_long(descriptor, rest, over=over)
        else:
            self.at_end = True
            if rest and over:
                self._add(rest, len(rest))

    def _add(self, line: bytes, length: int) -> None:
        self.lines.append(line.decode(errors="replace") + "\n")
        self.end += length

    def _add_long(self, descriptor: int, head: bytes, *, over: bool) -> None:
        """Add a line of more than a page, cut."""
        length = len(head)
        while chunk := os.pread(descriptor, _CHUNK_BYTES, self.end + length):
            found = chunk.find(b"\n")
            if found >= 0:
                self._add_cut(head, length + found + 1)
                return
            length += len(chunk)
        self.at_end = True
        if over:
            self._add_cut(head, length)

    def _add_cut(self, head: bytes, length: int) -> None:
        self.lines.append(head.decode(errors="replace") + _CUT_MARK + "\n")
        self.end += length


def missing_page(from_line: int, log_id: int) -> LogPage:
    """What is answered when there is no file."""
    return LogPage(from_line, from_line, f"there is no log of run {log_id} on this executor\n", is_end=True)
