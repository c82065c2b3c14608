"""The log of a run: one file, written line by line as the run goes on."""

import functools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from jobwheel.executor.errors import StorageError
from jobwheel.executor.log_index import KEEP_BYTES, LineIndex
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

DAY_MS: Final = 86_400_000
_MOST_EPOCH_MS: Final = 253_402_214_400_000  # 9999-12-31, so that the neighbouring days exist too
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_MODE: Final = 0o640
_OPEN_TRIES: Final = 3


class RunLogFolder:
    """`{root}/{yyyy-MM-dd}/{log id}.log`; the day is the trigger time's in the host's zone."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._root = str(root)
        self._clock = clock

    def path(self, log_id: int, log_date_time: int) -> str:
        """Where the log of a run belongs.

        Args:
            log_id: the run.
            log_date_time: its trigger time, epoch milliseconds.
        """
        return f"{self._root}/{day_of(log_date_time)}/{log_id}.log"

    def create(self, log_id: int, log_date_time: int) -> "RunLog":
        """Make the file; one that is there is gone on with.

        Raises:
            StorageError: it cannot be made.
        """
        path = self.path(log_id, log_date_time)
        try:
            descriptor, is_new = _made(path)
            return RunLog(path, self._clock, descriptor, is_new=is_new)
        except OSError as error:
            raise StorageError(Path(path), error.strerror or str(error)) from error

    def find(self, log_id: int, log_date_time: int) -> str | None:
        """The log of a run, in its day or a neighbouring one: clocks and zones may differ. None if there is none."""
        for path in self._candidates(log_id, log_date_time):
            if os.path.isfile(path):  # noqa: PTH113 - no Path is needed, and this is on the way of requests
                return path
        return None

    def _candidates(self, log_id: int, log_date_time: int) -> Iterator[str]:
        for shift in (0, -DAY_MS, DAY_MS):
            yield self.path(log_id, log_date_time + shift)


def is_storable(log_date_time: int) -> bool:
    """Whether the instant, epoch milliseconds, has a day that a folder can be named after."""
    return 0 <= log_date_time <= _MOST_EPOCH_MS


def _made(path: str) -> tuple[int, bool]:
    """The file, opened, and whether it was not there before."""
    try:
        return _open(path, _FLAGS | os.O_EXCL), True
    except FileExistsError:
        return _open(path), False


def _open(path: str, flags: int = _FLAGS) -> int:
    for _ in range(_OPEN_TRIES):
        try:
            return os.open(path, flags, _MODE)
        except FileNotFoundError:
            # Again if need be: an old day's folder that is empty may be removed in between.
            Path(path).parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, flags, _MODE)


def day_of(epoch_ms: int) -> str:
    """The day of an instant in the host's zone, as `yyyy-MM-dd`."""
    return _second(epoch_ms // 1000, time.timezone, time.tzname)[:10]


class LogSink(Protocol):
    """Where the lines of one run go: its file, or, in a child process, the pipe to who has the file."""

    @property
    def path(self) -> str:
        """The file."""
        ...

    def write(self, level: str, text: str) -> None:
        """Append `text` as one line, or as several if it has line breaks. From any thread; never raises."""
        ...


class RunLog:
    """The log of one run. Writes from any thread; what comes after `close` is dropped.

    A disk that fails does not fail the run: the first error is reported, the lines are lost. Every few mebibytes it
    leaves word beside the file where lines begin, for who reads it.
    """

    __slots__ = ("_clock", "_closed", "_descriptor", "_index", "_is_new", "_lock", "_process", "_unmarked", "path")

    def __init__(self, path: str, clock: Clock, descriptor: int, *, is_new: bool = False) -> None:
        self.path = path
        self._is_new = is_new
        self._clock = clock
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._descriptor = descriptor
        self._closed = False
        self._unmarked = 0
        self._index: LineIndex | None = None

    def write(self, level: str, text: str) -> None:
        """Append `text` as one line, or as several if it has line breaks."""
        line = f"{stamp(self._clock.now())} [{level}] {text}\n".encode(errors="backslashreplace")
        if self._process != os.getpid():
            # In a child that a handler forked: whoever wrote at that moment holds the lock there for ever.
            self._lock, self._process = threading.Lock(), os.getpid()
        with self._lock:
            error = None if self._closed else self._write(line)
        self._tell(error)

    def _tell(self, error: OSError | None) -> None:
        # Not under the lock: inside a run this line comes back here, and is dropped as this log is closed now.
        if error is not None:
            log.warning("run_log.cannot_write", path=self.path, error=str(error))

    def _write(self, data: bytes) -> OSError | None:
        self._unmarked += len(data)
        try:
            if self._descriptor < 0:
                self._descriptor = _open(self.path)
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            self._closed = True
            self._release()
            return error
        if self._unmarked >= KEEP_BYTES:
            self._mark()
        return None

    def _mark(self) -> None:
        # From the file and not from what is written here: another process may have written to it as well.
        self._unmarked = 0
        if self._index is None:
            self._index = LineIndex(self.path)
        self._index.follow()

    def park(self) -> None:
        """Close the file until the next line: the run waits, and open files are few."""
        with self._lock:
            error = self._release()
            self._closed = self._closed or error is not None
        self._tell(error)

    def close(self) -> None:
        """Close the file for good. Again: nothing."""
        with self._lock:
            self._closed = True
            error = self._release()
        self._tell(error)

    def discard(self) -> None:
        """Close the file and remove it: the run was not accepted after all, and must not look as if it was.

        One that was there before stays: it is the log of a run that was.
        """
        self.close()
        if self._is_new:
            Path(self.path).unlink(missing_ok=True)

    def _release(self) -> OSError | None:
        descriptor, self._descriptor = self._descriptor, -1
        try:
            if descriptor >= 0:
                os.close(descriptor)
        except OSError as error:
            # What the disk says of lines that it had taken before. The file is closed all the same: its number, which
            # was forgotten first, may be another's by now.
            return error
        return None


def stamp(epoch_ms: int) -> str:
    """An instant as `yyyy-MM-dd HH:mm:ss.SSS` in the host's zone."""
    return f"{_second(epoch_ms // 1000, time.timezone, time.tzname)}.{epoch_ms % 1000:03d}"


@functools.lru_cache(maxsize=16)
def _second(epoch_s: int, _zone: int, _names: tuple[str, str]) -> str:
    # Not strftime: it is several times slower, and this is on the way of every run. The zone is a part of the key: a
    # program may change it.
    local = time.localtime(epoch_s)
    return (
        f"{local.tm_year:04d}-{local.tm_mon:02d}-{local.tm_mday:02d} "
        f"{local.tm_hour:02d}:{local.tm_min:02d}:{local.tm_sec:02d}"
    )
