"""The log of a run: one file, written line by line as the run goes on."""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from jobwheel.executor.errors import StorageError
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_DAY_MS = 86_400_000
_MOST_EPOCH_MS = 253_402_214_400_000  # 9999-12-31, so that the neighbouring days exist too


class RunLogFolder:
    """`{root}/{yyyy-MM-dd}/{log id}.log`; the day is the trigger time's in the host's zone."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, log_id: int, log_date_time: int) -> Path:
        """Where the log of a run belongs.

        Args:
            log_id: the run.
            log_date_time: its trigger time, epoch milliseconds.
        """
        return self._root / _day(log_date_time) / f"{log_id}.log"

    def create(self, log_id: int, log_date_time: int) -> Path:
        """Make the file, empty; one that is there stays as it is.

        Raises:
            StorageError: it cannot be made.
        """
        path = self.path(log_id, log_date_time)
        try:
            os.close(self._open_new(path))
        except OSError as error:
            raise StorageError(path, error.strerror or str(error)) from error
        return path

    def _open_new(self, path: Path) -> int:
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)

    def find(self, log_id: int, log_date_time: int) -> Path | None:
        """The log of a run, in its day or a neighbouring one: clocks and zones may differ. None if there is none."""
        for path in self._candidates(log_id, log_date_time):
            if path.is_file():
                return path
        return None

    def _candidates(self, log_id: int, log_date_time: int) -> Iterator[Path]:
        for shift in (0, -_DAY_MS, _DAY_MS):
            yield self.path(log_id, log_date_time + shift)


def is_storable(log_date_time: int) -> bool:
    """Whether the instant, epoch milliseconds, has a day that a folder can be named after."""
    return 0 <= log_date_time <= _MOST_EPOCH_MS


def _day(epoch_ms: int) -> str:
    # Not strftime: it is several times slower, and this is on the way of every run.
    local = time.localtime(epoch_ms // 1000)
    return f"{local.tm_year:04d}-{local.tm_mon:02d}-{local.tm_mday:02d}"


class RunLog:
    """The open log of one run. Writes from any thread; what comes after `close` is dropped.

    A disk that fails does not fail the run: the first error is reported, the lines are lost.
    """

    __slots__ = ("_clock", "_descriptor", "_lock", "path")

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._descriptor = self._open()

    def _open(self) -> int:
        try:
            return os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o640)
        except OSError as error:
            log.warning("run_log.cannot_open", path=self.path, error=str(error))
            return -1

    def write(self, level: str, text: str) -> None:
        """Append `text` as one line, or as several if it has line breaks."""
        line = f"{stamp(self._clock.now())} [{level}] {text}\n".encode(errors="backslashreplace")
        with self._lock:
            if self._descriptor >= 0:
                self._write(line)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            log.warning("run_log.cannot_write", path=self.path, error=str(error))
            os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Close the file. Again: nothing."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1


def stamp(epoch_ms: int) -> str:
    """An instant as `yyyy-MM-dd HH:mm:ss.SSS` in the host's zone."""
    local = time.localtime(epoch_ms // 1000)
    return (
        f"{local.tm_year:04d}-{local.tm_mon:02d}-{local.tm_mday:02d} "
        f"{local.tm_hour:02d}:{local.tm_min:02d}:{local.tm_sec:02d}.{epoch_ms % 1000:03d}"
    )
