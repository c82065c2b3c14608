"""Time is an argument. This module is the only place that reads the machine's clocks."""

import asyncio
import time
from typing import Final, Protocol

# It exists on Linux alone; elsewhere the monotonic clock is the nearest thing.
_BOOT_CLOCK: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """The clocks that the program reads.

    Instants are integers of epoch milliseconds; durations are seconds. Methods are safe to call from any thread,
    `wait` from a running event loop.
    """

    def now(self) -> int:
        """The host's wall clock, epoch milliseconds. May step forwards and backwards."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment; never goes back; stands still while the machine is suspended."""
        ...

    def boot_time(self) -> float:
        """Seconds since some moment; never goes back; goes on while the machine is suspended."""
        ...

    async def wait(self, delay_s: float, wake: asyncio.Event | None = None) -> bool:
        """Wait for `delay_s` by the monotonic clock, or until `wake` is set: True means woken, False timed out.

        The event is left as it is: who waits clears it. A delay of 0 or less gives other tasks a turn. The wait may
        end a fraction of a millisecond early (event loops round); who must not be early looks at the clock again.
        """
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()

    def boot_time(self) -> float:
        return time.clock_gettime(_BOOT_CLOCK)

    async def wait(self, delay_s: float, wake: asyncio.Event | None = None) -> bool:
        if wake is None:
            await asyncio.sleep(max(0.0, delay_s))
            return False
        if wake.is_set():
            await asyncio.sleep(0)
            return True
        try:
            async with asyncio.timeout(max(0.0, delay_s)):
                await wake.wait()
        except TimeoutError:
            return wake.is_set()
        return True
