"""The files of scripts: each version in one, for as long as it may be run."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jobwheel.executor.errors import StorageError
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_VERSION: Final = r"-?\d+_-?\d+(\.[0-9a-f]{16})?\.[a-z0-9]+"
_NAME: Final = re.compile(rf"{_VERSION}|\.{_VERSION}\.\d+")
_TRIES: Final = 100
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

    def name_by_content(self) -> str:
        """For when another content has the name above: another installation may have a job and a moment like this."""
        digest = hashlib.sha256(self.source.encode()).hexdigest()[:16]
        return f"{self.job_id}_{self.updated_ms}.{digest}{self.suffix}"


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
        with self._lock:
            path, descriptor = self._hold(version)
            self._written.setdefault(version.job_id, {})[path.name] = version.updated_ms
        try:
            yield path
        finally:
            os.close(descriptor)
            with self._lock:
                self._remove_old(version.job_id)

    def _hold(self, version: ScriptVersion) -> tuple[Path, int]:
        """Lock the version's file, written if need be; return it and the descriptor that has the lock."""
        source, path = version.source.encode(), self._folder / version.file_name
        for _ in range(_TRIES):
            with contextlib.suppress(FileNotFoundError):
                descriptor = _locked(path, _READ)
                if _is_whole(path, descriptor, source):
                    return path, descriptor
                os.close(descriptor)
                # Not written over: who runs it may not have opened it yet. Nobody else writes this name.
                path = self._folder / version.name_by_content()
                return path, _whole_or_written(path, source)
            with contextlib.suppress(FileExistsError):
                return path, _written(path, source, _move_to_new)
        raise FileExistsError(errno.EEXIST, "comes and goes", str(path))

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


def _whole_or_written(path: Path, source: bytes) -> int:
    with contextlib.suppress(FileNotFoundError):
        descriptor = _locked(path, _READ)
        if _is_whole(path, descriptor, source):
            return descriptor
        os.close(descriptor)
    return _written(path, source, os.replace)


def _written(path: Path, source: bytes, move: Callable[[Path, Path], None]) -> int:
    """Make the file, whole or not at all, and lock it. A run that has opened the file of this name keeps what it has.

    Raises:
        FileExistsError: `move` says that it is there by now.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = _locked(draft, _MAKE)
    try:
        _write(descriptor, source)
        move(draft, path)
    except BaseException:
        os.close(descriptor)
        raise
    finally:
        draft.unlink(missing_ok=True)
    return descriptor


def _move_to_new(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links. Two installations that begin with this name at once may meet there.
        draft.replace(path)


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
