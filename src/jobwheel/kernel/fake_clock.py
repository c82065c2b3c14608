"""A clock that stands still until a test moves it."""

import asyncio
import heapq
import itertools

_SETTLE_TURNS = 50


class FakeClock:
    """A `Clock` that moves by `advance` (time passes), `step` (someone sets the wall clock) and `suspend`.

    Args:
        now_ms: where the wall clock starts, epoch milliseconds.
    """

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._wall_ms = float(now_ms)
        self._monotonic_s = 1_000.0
        self._boot_s = 2_000.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> int:
        return round(self._wall_ms)

    def monotonic(self) -> float:
        return self._monotonic_s

    def boot_time(self) -> float:
        return self._boot_s

    @property
    def waiting(self) -> int:
        """How many waits are under way."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def wait(self, delay_s: float, wake: asyncio.Event | None = None) -> bool:
        if delay_s <= 0 or (wake is not None and wake.is_set()):
            await asyncio.sleep(0)
            return wake is not None and wake.is_set()
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._monotonic_s + delay_s, next(self._order), sleeper))
        if wake is None:
            await sleeper
            return False
        woken = asyncio.create_task(_until_set(wake))
        try:
            await asyncio.wait({sleeper, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            woken.cancel()
        return wake.is_set()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass: sleepers wake in the order of their times, each seeing the time it asked for."""
        target = self._monotonic_s + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= target:
            due, _, sleeper = heapq.heappop(self._sleepers)
            self._pass_until(max(due, self._monotonic_s))
            if not sleeper.done():
                sleeper.set_result(None)
                await settle()
        self._pass_until(target)
        await settle()

    def step(self, seconds: float) -> None:
        """Set the wall clock forwards (or backwards, below 0) without any time passing."""
        self._wall_ms += seconds * 1000

    def suspend(self, seconds: float) -> None:
        """The machine sleeps: wall and boot-time clocks go on, the monotonic clock does not."""
        self._wall_ms += seconds * 1000
        self._boot_s += seconds

    def _pass_until(self, monotonic_s: float) -> None:
        seconds = monotonic_s - self._monotonic_s
        self._wall_ms += seconds * 1000
        self._boot_s += seconds
        # Set, not added to: a sleeper must not wake a rounding error before its time.
        self._monotonic_s = monotonic_s


async def _until_set(event: asyncio.Event) -> None:
    await event.wait()


async def settle(turns: int = _SETTLE_TURNS) -> None:
    """Give the tasks that are ready their turns. Does not wait for threads or sockets."""
    for _ in range(turns):
        await asyncio.sleep(0)
