"""What a run in a child process says, prints and logs, on its way to the parent."""

import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

from jobwheel.executor.child_messages import Event, LogLine, line_of
from jobwheel.executor.output_lines import OutputLines

_STANDARD_OUTPUT: Final = 1
STANDARD_ERROR: Final = 2

Send = Callable[[Event], None]
"""Tells the parent; from any thread."""


class EventPipe:
    """The way to the parent, a message at a time."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def send(self, event: Event) -> None:
        """Send it. Without a parent it goes nowhere, as this process then ends."""
        data = line_of(event)
        with self._lock, suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._descriptor, data) :]


class ChildLog:
    """The log of one run: its lines go to the parent, who has the file. What comes after `close` is dropped."""

    def __init__(self, path: str, send: Send) -> None:
        self.path = path
        self._send = send
        self._closed = False

    def write(self, level: str, text: str) -> None:
        """Append `text` as one line, or as several if it has line breaks."""
        if not self._closed:
            self._send(LogLine(level, text))

    def close(self) -> None:
        self._closed = True


class HandlerOutput(io.RawIOBase):
    """What is printed: to the log of the run under way, among its other lines in order; else to the descriptor."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._lines = OutputLines()
        self._log: ChildLog | None = None

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        run_log = self._log
        if run_log is None:
            return os.write(self._descriptor, data)
        self._take(run_log, self._lines.feed(bytes(data)))
        return len(data)

    def turn_to(self, run_log: ChildLog | None) -> None:
        """From now on it is this run that prints. The last line of the former one is its own, even without an end."""
        if self._log is not None:
            self._take(self._log, self._lines.end())
        self._log = run_log

    def _take(self, run_log: ChildLog, lines: Iterator[str]) -> None:
        for line in lines:
            run_log.write("INFO", line)


class Printing:
    """`sys.stdout` and `sys.stderr` as the log of the run under way."""

    def __init__(self) -> None:
        self._raw = (HandlerOutput(_STANDARD_OUTPUT), HandlerOutput(STANDARD_ERROR))
        self._text = [
            io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
            for raw in self._raw
        ]

    def install(self) -> None:
        sys.stdout, sys.stderr = self._text

    def turn_to(self, run_log: ChildLog | None) -> None:
        """From now on it is this run that prints; None: no run at all."""
        for text, raw in zip(self._text, self._raw, strict=True):
            # A handler may have closed it; that is its matter.
            with suppress(ValueError):
                text.flush()
            raw.turn_to(run_log)
