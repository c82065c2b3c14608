"""Reads the log of a run by line, in bounded pieces."""

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from typing import Final

from jobwheel.executor.log_index import LineIndex
from jobwheel.wire.codec import encode
from jobwheel.wire.messages import LogPage

MOST_LINES: Final = 1000
MOST_BYTES: Final = 1024 * 1024
_MOST_FILES: Final = 64
_CUT_MARK: Final = " … (the line is longer and was cut here)"


class RunLogReader:
    """Reads pages, and remembers of the files read last where their lines begin.

    Of a big file that is known from what its writer, or a reader before, has left beside it (`LineIndex`). Without that
    the first look far into it costs one scan of what lies before. Safe to use from any thread; a big file is read in
    pieces, never whole.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._indexes: OrderedDict[str, LineIndex] = OrderedDict()

    def read(self, path: str, from_line: int, *, over: bool) -> LogPage:
        """The lines from `from_line` (counted from 1) on: at most 1,000 lines and 1 MiB, at least one line if any.

        The bytes are counted as the reply carries them: a control character takes six. Bytes that are not UTF-8 become
        U+FFFD.

        Args:
            path: the file.
            from_line: the first line wanted.
            over: nothing will be written any more; then a last line without an end counts, and `is_end` may be true.

        Raises:
            OSError: the file cannot be read.
        """
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            index = self._index(path)
            start = index.seek(descriptor, from_line)
            if start is None:
                return LogPage(from_line, from_line - 1, "", over)
            page = _Page(os.pread(descriptor, MOST_BYTES, start), over=over)
            if page.begins_long_line:
                ended = index.seek(descriptor, from_line + 1) is not None
                page.add_long_line(ended=ended, over=over)
        finally:
            os.close(descriptor)
        return LogPage(from_line, from_line - 1 + len(page.lines), "".join(page.lines), over and page.at_end)

    def _index(self, path: str) -> LineIndex:
        with self._lock:
            index = self._indexes.get(path)
            if index is None:
                index = self._indexes[path] = LineIndex(path)
            self._indexes.move_to_end(path)
            if len(self._indexes) > _MOST_FILES:
                self._indexes.popitem(last=False)
            return index


class _Page:
    """The lines of one reply, decoded, each with its line break.

    Args:
        data: what the file holds from the page's beginning on, `MOST_BYTES` unless it ends before.
        over: nothing will be written any more.
    """

    def __init__(self, data: bytes, *, over: bool) -> None:
        self.lines: list[str] = []
        self._room = MOST_BYTES
        self._data = data
        whole = data.split(b"\n", MOST_LINES)
        rest = whole.pop()
        # A page that is full has its rest behind it: of more lines, or of one that goes on beyond what was read.
        self.at_end = len(data) < MOST_BYTES and not (rest and len(whole) == MOST_LINES)
        self.begins_long_line = not whole and len(data) == MOST_BYTES
        if self.at_end and rest and over:
            whole.append(rest)
        for line in whole:
            if not self._add(line.decode(errors="replace")):
                self.at_end = False
                break

    def _add(self, text: str) -> bool:
        """Add a line if there is room for it; the first one is cut to what there is room for."""
        size = _size(text)
        if size > self._room:
            if self.lines:
                return False
            text, size = _fitting(text, self._room) + _CUT_MARK, self._room
        self._room -= size
        self.lines.append(text + "\n")
        return True

    def add_long_line(self, *, ended: bool, over: bool) -> None:
        """Add a line of more than a page, cut; nothing of it if it may still grow."""
        self.at_end = not ended
        if ended or over:
            self.lines.append(_fitting(self._data.decode(errors="replace"), MOST_BYTES) + _CUT_MARK + "\n")


def _size(text: str) -> int:
    """How many bytes a text takes in a reply, without its quotes."""
    return len(encode(text)) - 2


def _fitting(text: str, most_bytes: int) -> str:
    if _size(text) <= most_bytes:
        return text
    return text[: bisect_right(range(len(text)), most_bytes, key=lambda length: _size(text[:length])) - 1]


def missing_page(from_line: int, log_id: int) -> LogPage:
    """What is answered when there is no file."""
    return LogPage(from_line, from_line, f"there is no log of run {log_id} on this executor\n", is_end=True)
