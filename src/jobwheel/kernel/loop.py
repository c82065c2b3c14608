"""A thin loop around a `run_once`."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.errors import JobwheelError
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)

MOST_PAUSE_S: Final = 5.0
"""The longest pause after failures: who waits for a loop to go on waits for ten seconds at most, its pass included."""


class PeriodicLoop(Service):
    """Calls `run_once` each `interval_s`, and at once after `wake`.

    A pass that fails is logged (once when it begins to fail, once when it works again), counted, and tried again after
    a back-off. The loop never ends by itself.
    """

    def __init__(
        self,
        name: str,
        run_once: Callable[[], Awaitable[object]],
        interval_s: float,
        clock: Clock,
        backoff: Backoff | None = None,
    ) -> None:
        super().__init__(name, clock)
        self._run_once = run_once
        self._interval_s = interval_s
        self._backoff = backoff or Backoff(most_s=MOST_PAUSE_S)
        self._wake = asyncio.Event()
        self.passes = 0
        self.failures = 0
        self.failures_in_a_row = 0
        self.last_error: str | None = None
        self.last_success_s: float | None = None
        """When the last good pass ended, by the monotonic clock; None before the first."""

    def wake(self) -> None:
        """Make the next pass begin at once. Call from the loop's own thread."""
        self._wake.set()

    async def on_start(self) -> None:
        self.supervise("loop", self._loop)

    async def _loop(self) -> None:
        while True:
            self._wake.clear()
            delay_s = await self._pass()
            await self.clock.wait(delay_s, self._wake)

    async def _pass(self) -> float:
        try:
            await self._run_once()
        except Exception as error:  # noqa: BLE001 - a pass may fail in any way; the loop goes on and reports it
            return self._failed(error)
        if self.failures_in_a_row:
            log.info("loop.recovered", loop=self.name, failures=self.failures_in_a_row)
        self.passes += 1
        self.failures_in_a_row = 0
        self.last_error = None
        self.last_success_s = self.clock.monotonic()
        return self._interval_s

    def _failed(self, error: Exception) -> float:
        self.failures += 1
        self.failures_in_a_row += 1
        self.last_error = f"{type(error).__name__}: {error}"
        if self.failures_in_a_row == 1:
            # What we say ourselves says it all; where something else went wrong is to be seen from the traceback.
            unknown = None if isinstance(error, JobwheelError) else error
            log.error("loop.pass_failed", loop=self.name, error=self.last_error, exc_info=unknown)
        else:
            log.debug("loop.pass_failed_again", loop=self.name, failures=self.failures_in_a_row, error=self.last_error)
        return self._backoff.delay_s(self.failures_in_a_row)
