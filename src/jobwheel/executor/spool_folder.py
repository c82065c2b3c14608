"""The folder of one process's spool, under a file lock that ends with the process."""

import errno
import fcntl
import os
import threading
from pathlib import Path
from typing import Final

from jobwheel.kernel.backoff import Backoff

LOCK_NAME: Final = "lock"
_LOCK_TRIES: Final = 50
_BETWEEN_TRIES: Final = Backoff(first_s=0.001, most_s=0.1)


def make_and_lock(folder: Path) -> int:
    """Make a folder and lock it.

    A process that looks for folders to adopt has it for a moment, and may remove it. That moment is as long as its disk
    is slow: it is waited for, some seconds at most.

    Raises:
        OSError: it cannot be made or locked.
    """
    for failures in range(1, _LOCK_TRIES):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return lock(folder)
        except (BlockingIOError, FileNotFoundError):
            _pause(_BETWEEN_TRIES.delay_s(failures))
    return lock(folder)


def _pause(delay_s: float) -> None:
    threading.Event().wait(delay_s)


def lock(folder: Path) -> int:
    """Lock a folder for as long as the descriptor is open.

    Raises:
        OSError: another process has it.
    """
    path = folder / LOCK_NAME
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino != path.stat().st_ino:
            raise FileNotFoundError(errno.ENOENT, "removed meanwhile", str(path))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
