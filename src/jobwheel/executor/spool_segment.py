"""One file of the spool: a line that says how far an admin has it, then one JSON line for each result."""

import errno
import os
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import Result

log = get_logger(__name__)

HEADER_BYTES = 24
_SCAN_BYTES = 1024 * 1024
_MOST_MEMORY = 10_000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Result).decode


@dataclass(frozen=True, slots=True)
class SpoolBatch:
    """Results read from a segment: where they end there, and how many lines they took (bad ones included)."""

    segment: "Segment"
    results: list[Result]
    end: int
    lines: int


class Segment(Protocol):
    """A piece of the spool. Used under the spool's lock alone."""

    @property
    def pending(self) -> int:
        """How many results wait."""
        ...

    @property
    def folder(self) -> Path | None:
        """Where it lies on the disk."""
        ...

    def read(self, most: int, most_bytes: int) -> SpoolBatch:
        """The oldest results that wait."""
        ...

    def log_ids(self) -> set[int]:
        """The runs of the results that wait. Empty once the segment is deleted or closed."""
        ...

    def done(self, batch: SpoolBatch) -> None:
        """The results of the batch need not be kept."""
        ...

    def delete(self) -> None:
        """Remove it for good."""
        ...

    def close(self) -> None:
        """Close it; what waits stays on the disk."""
        ...


class SegmentFile:
    """A segment on the disk."""

    def __init__(self, path: Path, descriptor: int, size: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self._start = HEADER_BYTES
        self.size = size
        self.pending = 0

    @classmethod
    def create(cls, path: Path) -> "SegmentFile":
        """A new segment.

        Raises:
            OSError: it cannot be made.
        """
        segment = cls(path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640), HEADER_BYTES)
        try:
            segment._write_header()
        except OSError:
            segment.delete()
            raise
        return segment

    @classmethod
    def load(cls, path: Path) -> "SegmentFile":
        """A segment of a process that is gone.

        Raises:
            OSError: it cannot be read.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        segment = cls(path, descriptor, os.fstat(descriptor).st_size)
        header = os.pread(descriptor, HEADER_BYTES, 0).strip()
        segment._start = max(HEADER_BYTES, int(header) if header.isdigit() else 0)
        segment.pending = segment._count_lines()
        return segment

    def _count_lines(self) -> int:
        lines, offset, last = 0, self._start, b"\n"
        while chunk := os.pread(self._descriptor, _SCAN_BYTES, offset):
            lines += chunk.count(b"\n")
            offset += len(chunk)
            last = chunk[-1:]
        # A line without an end was being written when the machine stopped.
        return lines + (last != b"\n")

    @property
    def folder(self) -> Path:
        return self._path.parent

    def append(self, result: Result) -> None:
        """Add a result.

        Raises:
            OSError: it could not be written whole; then nothing of it is kept.
        """
        line = _encode(result) + b"\n"
        written = os.pwrite(self._descriptor, line, self.size)
        if written < len(line):
            os.ftruncate(self._descriptor, self.size)
            raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written")
        self.size += len(line)
        self.pending += 1

    def read(self, most: int, most_bytes: int) -> SpoolBatch:
        lines = self._read_lines(most_bytes)[:most]
        results = [result for line in lines if (result := self._parse(line)) is not None]
        return SpoolBatch(self, results, self._start + sum(map(len, lines)), len(lines))

    def _read_lines(self, most_bytes: int) -> list[bytes]:
        """The lines that fit into `most_bytes`, at least one."""
        data = os.pread(self._descriptor, most_bytes, self._start)
        if self._start + len(data) >= self.size:
            return data.splitlines(keepends=True)
        end = data.rfind(b"\n")
        if end < 0:
            data = self._first_line(data)
            end = len(data)
        return data[: end + 1].splitlines(keepends=True)

    def _first_line(self, head: bytes) -> bytes:
        while chunk := os.pread(self._descriptor, _SCAN_BYTES, self._start + len(head)):
            end = chunk.find(b"\n")
            if end >= 0:
                return head + chunk[: end + 1]
            head += chunk
        return head

    def _parse(self, line: bytes) -> Result | None:
        try:
            return _decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            log.warning("spool.line_unreadable", file=self._path, bytes=len(line), error=str(error))
            return None

    def log_ids(self) -> set[int]:
        if self._descriptor < 0 or not self.pending:
            return set()
        return {result.log_id for result in self.read(self.pending, self.size).results}

    def done(self, batch: SpoolBatch) -> None:
        self._start = batch.end
        self.pending -= batch.lines
        if self._start >= self.size:
            # First the content, then the header: between the two the header is beyond the end, which means "all done".
            os.ftruncate(self._descriptor, HEADER_BYTES)
            self._start = self.size = HEADER_BYTES
            self.pending = 0
        self._write_header()

    def _write_header(self) -> None:
        os.pwrite(self._descriptor, b"%*d\n" % (HEADER_BYTES - 1, self._start), 0)

    def duplicate(self) -> int:
        """A descriptor of the file for a slow operation, to be closed by the caller."""
        return os.dup(self._descriptor)

    def delete(self) -> None:
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class MemorySegment:
    """Results that the disk refused. Bounded: when it is full, the oldest are lost."""

    folder = None

    def __init__(self) -> None:
        self._results: deque[Result] = deque(maxlen=_MOST_MEMORY)

    @property
    def pending(self) -> int:
        return len(self._results)

    def append(self, result: Result) -> None:
        """Add a result."""
        if len(self._results) == _MOST_MEMORY:
            log.error("spool.result_lost", log_id=self._results[0].log_id, reason="disk and memory are full")
        self._results.append(result)

    def read(self, most: int, most_bytes: int) -> SpoolBatch:
        results: list[Result] = []
        size = 0
        for result in self._results:
            size += 100 + len(result.message or "")
            if len(results) == most or (results and size > most_bytes):
                break
            results.append(result)
        return SpoolBatch(self, results, 0, len(results))

    def log_ids(self) -> set[int]:
        return {result.log_id for result in self._results}

    def done(self, batch: SpoolBatch) -> None:
        for result in batch.results:
            # One that was pushed out meanwhile is not there any more.
            if self._results and self._results[0] is result:
                self._results.popleft()

    def delete(self) -> None:
        self._results.clear()

    def close(self) -> None:
        if self._results:
            log.error("spool.results_lost", results=len(self._results), reason="the disk refused them")
            self._results.clear()
