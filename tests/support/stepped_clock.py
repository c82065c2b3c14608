"""A clock whose wall time a test sets."""

from jobwheel.kernel.clock import SystemClock

_MINUTE_MS = 60_000


class SteppedClock(SystemClock):
    """The machine's clocks, of which the wall clock can be set."""

    def __init__(self) -> None:
        self._off_ms = 0

    def now(self) -> int:
        return super().now() + self._off_ms

    def step(self, milliseconds: int) -> None:
        self._off_ms += milliseconds

    def step_to_next_minute(self) -> None:
        """A whole minute lies ahead from now on."""
        self.step(_MINUTE_MS - self.now() % _MINUTE_MS)
