"""Tells admins how far runs are."""

import asyncio
import threading
from collections.abc import Callable
from typing import Final, Protocol

from jobwheel.executor.errors import AdminRefusedError
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service
from jobwheel.wire.errors import UncertainError, UnreachableError
from jobwheel.wire.mend import without_surrogates
from jobwheel.wire.messages import Envelope, Progress

log = get_logger(__name__)

MOST_TEXT: Final = 1000
"""How many characters of a handler's words are sent."""

_PAUSE_S: Final = 1.0


class ProgressReceiver(Protocol):
    """Where progress goes: the admins, behind their client. Raises as `AdminClient` does."""

    async def progress(self, admin: str, progress: list[Progress]) -> Envelope:
        """Tell one admin how far runs are."""
        ...


class ProgressSender(Service):
    """Sends the latest progress of each run to the admins that want it, once a second at most.

    What an admin does not take is lost: the next one says more. `report` may be called from any thread.
    """

    def __init__(self, admin: ProgressReceiver, clock: Clock) -> None:
        super().__init__("executor.progress", clock)
        self._admin = admin
        self._admins: set[str] = set()
        self._lock = threading.Lock()
        self._latest: dict[int, Progress] = {}
        self._some = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def on_start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.supervise("send", self._send_for_ever)

    def want(self, admin: str, *, wanted: bool) -> None:
        """Whether an admin wants progress, as it said last."""
        (self._admins.add if wanted else self._admins.discard)(admin)

    def report(self, log_id: int, fraction: float, text: str) -> None:
        """Keep this as the latest of a run. Never waits."""
        loop = self._loop
        if loop is None or not self._admins:
            return
        with self._lock:
            self._latest[log_id] = Progress(log_id, fraction, without_surrogates(text[:MOST_TEXT]))
        # Not "if it is the first": a handler that is ended by force may get no further than this.
        if not self._some.is_set():
            _call(loop, self._some.set)

    async def _send_for_ever(self) -> None:
        while True:
            await self._some.wait()
            self._some.clear()
            with self._lock:
                latest, self._latest = list(self._latest.values()), {}
            if latest:
                await asyncio.gather(*(self._send(admin, latest) for admin in list(self._admins)))
                await self.clock.wait(_PAUSE_S)

    async def _send(self, admin: str, latest: list[Progress]) -> None:
        try:
            await self._admin.progress(admin, latest)
        except (UnreachableError, UncertainError, AdminRefusedError) as error:
            log.debug("progress.not_sent", admin=admin, runs=len(latest), error=str(error))


def _call(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # A handler that outlived the executor.
        log.debug("progress.executor_gone")
