"""A database server that says nothing: its processes are stopped, its connections stay open."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from jobwheel.kernel.clock import SystemClock
from tests.support.servers import Server

_CLOCK = SystemClock()
_STOPPED_WITHIN_S = 5.0


class FrozenServer:
    """Stops and continues a server: PostgreSQL has a process for each connection, MariaDB one for all."""

    def __init__(self, server: Server) -> None:
        self._process_id = server.process.process_id
        self._stopped: list[int] = []

    def freeze(self) -> None:
        # The parent first: it makes no new ones then.
        os.kill(self._process_id, signal.SIGSTOP)
        self._stopped = [self._process_id, *_children(self._process_id)]
        for process_id in self._stopped[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, signal.SIGSTOP)
        # The signal is on its way until one of the threads has taken it: on a busy machine others answer meanwhile.
        until_s = _CLOCK.monotonic() + _STOPPED_WITHIN_S
        while not all(_has_stopped(process_id) for process_id in self._stopped):
            assert _CLOCK.monotonic() < until_s, "the server does not stop"
            os.sched_yield()

    def thaw(self) -> None:
        while self._stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._stopped.pop(), signal.SIGCONT)


@contextlib.contextmanager
def freezable(server: Server) -> Iterator[FrozenServer]:
    """The means to stop a server, which goes on at the end."""
    frozen = FrozenServer(server)
    try:
        yield frozen
    finally:
        frozen.thaw()


def _has_stopped(process_id: int) -> bool:
    """Whether no thread of the process runs any more."""
    for task in Path(f"/proc/{process_id}/task").glob("*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if task.read_text().rpartition(")")[2].split()[0] not in {"T", "Z", "X"}:
                return False
    return True


def _children(process_id: int) -> list[int]:
    tasks = Path(f"/proc/{process_id}/task/{process_id}/children")
    return [int(child) for child in tasks.read_text().split()]
