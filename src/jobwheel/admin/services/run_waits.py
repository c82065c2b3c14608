"""Waiting for the end of runs, on behalf of whoever asks for it in a request."""

import asyncio
from typing import Final

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.services.errors import TooManyWaitingError
from jobwheel.admin.store.database import Database
from jobwheel.admin.store.run_list import open_among
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.loop import PeriodicLoop
from jobwheel.kernel.service import Service

MOST_WAIT_S: Final = 60
"""How long a request may wait: proxies give up on those that are silent for longer."""

MOST_WAITING: Final = 1000
"""How many requests wait at once on a node."""

LOOK_EVERY_S: Final = 0.5


class RunWaits(Service):
    """Tells when runs have ended, whichever node ends them: one look at the database for all, twice a second.

    Nobody waits while it is stopped, so that no request holds up the stop of the admin.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__("run_waits", clock)
        self._database = database
        self._waiting: dict[RunId, set[asyncio.Event]] = {}
        self._count = 0
        self._is_open = False
        self._looks = PeriodicLoop("run_waits", self._look, LOOK_EVERY_S, clock)

    async def wait(self, run_id: RunId, wait_s: float) -> None:
        """Return when the run has ended or is gone, at the latest after `wait_s` seconds.

        Raises:
            TooManyWaitingError: as many requests wait as may.
        """
        if not self._is_open:
            return
        if self._count >= MOST_WAITING:
            raise TooManyWaitingError(MOST_WAITING)
        ended = asyncio.Event()
        waiting = self._waiting.setdefault(run_id, set())
        waiting.add(ended)
        self._count += 1
        try:
            await self.clock.wait(wait_s, ended)
        finally:
            self._count -= 1
            waiting.discard(ended)
            if not waiting and self._waiting.get(run_id) is waiting:
                del self._waiting[run_id]

    async def on_start(self) -> None:
        await self._looks.start()
        self._is_open = True

    async def on_stop(self) -> None:
        self._is_open = False
        await self._looks.stop()
        self._wake(list(self._waiting))

    async def _look(self) -> None:
        run_ids = list(self._waiting)
        if run_ids:
            still_open = await self._database.read(open_among, run_ids)
            self._wake([run_id for run_id in run_ids if run_id not in still_open])

    def _wake(self, run_ids: list[RunId]) -> None:
        for run_id in run_ids:
            for ended in self._waiting.pop(run_id, ()):
                ended.set()
