"""Of several processes of one application exactly one serves; the others wait for their turn."""

import asyncio
import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import Final

from jobwheel.executor.errors import StorageError
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_LOOK_S: Final = 1.0


class Turn:
    """A file lock in the log path, for the host and the port of the settings.

    A web server with several workers starts an executor in each, and they cannot all have one port. Whoever takes the
    lock serves. It ends with the process, however that ends; children that were forked do not keep it. With a port of 0
    or less every process has a port of its own, serves and is registered: then there is nothing to wait for.
    """

    def __init__(self, settings: ExecutorSettings, clock: Clock) -> None:
        name = f"serving-{socket.gethostname()}-{settings.port}.lock"
        self._path = settings.log_path.absolute() / name if settings.port > 0 else None
        self._mounted = not settings.embedded_server
        self._clock = clock
        self._descriptor = -1

    def take(self) -> bool:
        """Take the turn; False: another process has it.

        Raises:
            StorageError: the log path cannot be written.
        """
        if self._path is None:
            return True
        try:
            return self._lock(self._path)
        except OSError as error:
            raise StorageError(self._path.parent, error.strerror or str(error)) from error

    def _lock(self, path: Path) -> bool:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            os.close(descriptor)
            return False
        except OSError as error:
            if error.errno not in {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}:
                os.close(descriptor)
                raise
            log.warning("executor.cannot_lock", file=path, error=str(error), advice="start one process alone")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
        self._descriptor = descriptor
        return True

    async def wait(self, stop: asyncio.Event) -> bool:
        """Return True once the turn is taken; False once `stop` is set."""
        log.info("executor.stands_by", serving_process=self._holder(), lock=self._path)
        if self._mounted:
            # The web server hands requests to any of its workers, and this one refuses them.
            advice = "use the embedded server, or start one worker process alone"
            log.warning("executor.mounted_in_several_processes", advice=advice)
        while not await self._clock.wait(_LOOK_S, stop):
            if self.take():
                log.info("executor.takes_over", lock=self._path)
                return True
        return False

    def _holder(self) -> str:
        try:
            return (self._path.read_text().strip() if self._path else "") or "unknown"
        except OSError:
            return "unknown"

    def release(self) -> None:
        """Let another process have the turn. Again, or before it was taken: nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
