"""A database server that says nothing: its processes are stopped, its connections stay open."""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers import Server


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


def _children(process_id: int) -> list[int]:
    tasks = Path(f"/proc/{process_id}/task/{process_id}/children")
    return [int(child) for child in tasks.read_text().split()]
