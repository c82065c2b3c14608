"""The folder of one process's spool, under a file lock that ends with the process."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Final

LOCK_NAME: Final = "lock"
_LOCK_TRIES: Final = 100


def make_and_lock(folder: Path) -> int:
    """Make a folder and lock it.

    Raises:
        OSError: it cannot be made or locked.
    """
    for _ in range(_LOCK_TRIES):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue  # a process that looks for folders to adopt has it for a moment, and may remove it
    return lock(folder)


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
