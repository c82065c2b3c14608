"""Of several processes of one application exactly one serves; the others wait for their turn."""

import asyncio
import socket
from typing import Final

from jobwheel.executor.errors import StorageError
from jobwheel.executor.process_lock import ProcessLock
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_LOOK_S: Final = 1.0


class Turn:
    """A file lock in the log path, for the host and the port of the settings.

    A web server with several workers starts an executor in each, and they cannot all have one port. Whoever takes the
    lock serves, and so do all executors of its process that want it. With a port of 0 or less every process has a port
    of its own, serves and is registered: then there is nothing to wait for.
    """

    def __init__(self, settings: ExecutorSettings, clock: Clock) -> None:
        name = f"serving-{socket.gethostname()}-{settings.port}.lock"
        self._path = settings.log_path.absolute() / name if settings.port > 0 else None
        self._mounted = not settings.embedded_server
        self._clock = clock
        self._lock: ProcessLock | None = None
        self._refused = False

    def take(self) -> bool:
        """Take the turn; False: another process has it.

        Raises:
            StorageError: the log path cannot be written.
        """
        if self._path is None:
            return True
        try:
            self._lock = ProcessLock.take(self._path)
            return self._lock is not None
        except OSError as error:
            raise StorageError(self._path.parent, error.strerror or str(error)) from error

    async def wait(self, stop: asyncio.Event) -> bool:
        """Return True once the turn is taken; False once `stop` is set. A disk that refuses is asked again."""
        log.info("executor.stands_by", serving_process=self._holder(), lock=self._path)
        if self._mounted:
            # The web server hands requests to any of its workers, and this one refuses them.
            advice = "use the embedded server, or start one worker process alone"
            log.warning("executor.mounted_in_several_processes", advice=advice)
        while not await self._clock.wait(_LOOK_S, stop):
            if self._take_if_possible():
                log.info("executor.takes_over", lock=self._path)
                return True
        return False

    def _take_if_possible(self) -> bool:
        try:
            taken = self.take()
        except StorageError as error:
            if not self._refused:
                log.warning("executor.cannot_take_turn", error=error.message)
            self._refused = True
            return False
        self._refused = False
        return taken

    def _holder(self) -> str:
        return (ProcessLock.holder(self._path) if self._path else "") or "unknown"

    def release(self) -> None:
        """Let another process have the turn. Again, or before it was taken: nothing."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None
