"""A file lock that belongs to the whole process, for as many of its parts as want it."""

import contextlib
import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import ClassVar

from jobwheel.executor.forked import close_in_children
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


class ProcessLock:
    """A locked file. It ends with the process, however that ends; children that were forked do not keep it.

    The system counts such a lock by process, and gives it up when any descriptor of the file is closed. So the process
    opens the file once, whoever asks, and closes it after the last `release`.
    """

    # Of the process, as the lock itself is.
    _all: ClassVar[dict[Path, "ProcessLock"]] = {}
    _change: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        self.process = os.getpid()
        self.users = 0

    @classmethod
    def take(cls, path: Path) -> "ProcessLock | None":
        """Take the lock, or a share of it if this process has it; None: another process has it.

        A file system that knows no locks is logged, and counts as having given it.

        Raises:
            OSError: the file cannot be made.
        """
        close_in_children(cls, cls._forget_who_changes)
        with cls._change:
            held = cls._all.get(path)
            # In a child that was forked there may be its parent's, which the child has not.
            if held is None or held.process != os.getpid():
                descriptor = _locked(path)
                if descriptor is None:
                    return None
                held = cls._all[path] = cls(path, descriptor)
            held.users += 1
            return held

    @classmethod
    def _forget_who_changes(cls, _: object) -> None:
        """In a forked child: the thread that had it at that moment, as one that stands by and looks, is not there."""
        cls._change = threading.Lock()

    @classmethod
    def holder(cls, path: Path) -> str:
        """The number of the process that has the lock; empty if that is not known."""
        with cls._change:
            held = cls._all.get(path)
            if held is not None and held.process == os.getpid():
                # Without a look into the file: with the descriptor that is closed after it the lock would be given up.
                return str(held.process)
            try:
                return path.read_text().strip()
            except OSError:
                return ""

    def release(self) -> None:
        """Give back what `take` gave. Once for each."""
        with self._change:
            self.users -= 1
            if self.users == 0:
                del self._all[self._path]
                os.close(self._descriptor)


def _locked(path: Path) -> int | None:
    path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        return None
    except OSError as error:
        if error.errno not in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
            os.close(descriptor)
            raise
        log.warning("executor.cannot_lock", file=path, error=str(error), advice="start one process alone")
    # For people; a full disk takes the lock away from nobody.
    with contextlib.suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
    return descriptor
