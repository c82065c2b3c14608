"""The files of scripts: each version in one, for as long as it may be run."""

import contextlib
import fcntl
import os
import re
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobwheel.executor.errors import StorageError
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME: Final = re.compile(r"-?\d+_-?\d+\.[a-z0-9]+|\.-?\d+_-?\d+\.[a-z0-9]+\.\d+")
_MAKE: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, weakref_slot=True)
class ScriptVersion:
    """A job's script as it was saved at `updated_ms`, epoch milliseconds."""

    job_id: int
    updated_ms: int
    suffix: str
    source: str

    @property
    def file_name(self) -> str:
        return f"{self.job_id}_{self.updated_ms}{self.suffix}"


class ScriptFiles:
    """The folder of scripts. Only the executor's user can read it, since scripts hold what their authors put there.

    Safe to use from any thread. Processes may share the folder: who runs a file has a shared lock on it, and what is
    locked is not removed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._written: dict[int, dict[str, int]] = {}

    def open(self) -> None:
        """Make the folder; remove what earlier processes left in it.

        Raises:
            StorageError: it cannot be used.
        """
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._folder.chmod(0o700)
            for left in list(self._folder.iterdir()):
                # Only what has been written here: a script may have put anything into its own folder.
                if _NAME.fullmatch(left.name) and _is_file(left):
                    _remove_unused(left)
        except OSError as error:
            raise StorageError(self._folder, error.strerror or str(error)) from error

    @contextlib.contextmanager
    def held(self, version: ScriptVersion) -> Iterator[Path]:
        """The version's file, which stays as it is while it is held. Afterwards those of older versions may go.

        Raises:
            OSError, UnicodeError: it cannot be written.
        """
        path = self._folder / version.file_name
        with self._lock:
            descriptor = self._hold(path, version.source.encode())
            self._written.setdefault(version.job_id, {})[path.name] = version.updated_ms
        try:
            yield path
        finally:
            os.close(descriptor)
            with self._lock:
                self._remove_old(version.job_id)

    def _hold(self, path: Path, source: bytes) -> int:
        """Lock the file, written if need be; return the descriptor that has the lock."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = _locked(path, _READ)
            if _is_whole(path, descriptor, source):
                return descriptor
            os.close(descriptor)
        # Whole or not at all. A run that has opened the file of this name keeps what it has.
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = _locked(draft, _MAKE)
        try:
            _write(descriptor, source)
            draft.replace(path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def _remove_old(self, job_id: int) -> None:
        written = self._written[job_id]
        newest_ms = max(written.values())
        for name in [name for name, updated_ms in written.items() if updated_ms < newest_ms]:
            try:
                if _remove_unused(self._folder / name):
                    del written[name]
            except OSError as error:
                # It is tried again after the next run; this one has nothing to do with it.
                log.warning("script.cannot_remove", file=self._folder / name, error=str(error))


def _locked(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _is_whole(path: Path, descriptor: int, source: bytes) -> bool:
    """Whether the file of this name is the one that is locked, and holds what it should."""
    try:
        return path.read_bytes() == source and path.stat().st_ino == os.fstat(descriptor).st_ino
    except OSError:
        return False


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(path.lstat().st_mode)


def _remove_unused(path: Path) -> bool:
    """Remove a file that nobody holds. False: somebody does."""
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink(missing_ok=True)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
