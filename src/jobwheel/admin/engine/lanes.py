"""Lanes: how many sends are under way at once, and which jobs go where."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import PendingRun

_SLOW_SEND_S = 0.5
_SLOW_SENDS = 10


class Lane:
    """A queue of runs that came due, and slots for the requests under way (the router's questions included)."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.in_use = 0
        self._slots = asyncio.Semaphore(limit)
        self._queue: deque[PendingRun] = deque()
        self._some = asyncio.Event()

    def __len__(self) -> int:
        """How many runs wait to take off."""
        return len(self._queue)

    def put(self, runs: Sequence[PendingRun]) -> None:
        if runs:
            self._queue.extend(runs)
            self._some.set()

    def put_first(self, runs: Sequence[PendingRun]) -> None:
        """Runs that had their turn and could not use it: they are next again."""
        if runs:
            self._queue.extendleft(reversed(runs))
            self._some.set()

    async def ready(self) -> None:
        """Return once a run waits."""
        await self._some.wait()

    def take(self, most: int) -> list[PendingRun]:
        """The runs that have waited longest."""
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), most))]
        if not self._queue:
            self._some.clear()
        return taken

    def clear(self) -> None:
        """Forget the runs that wait; slots stay with the requests that have them."""
        self._queue.clear()
        self._some.clear()

    async def __aenter__(self) -> None:
        """Take a slot, when one is free."""
        await self._slots.acquire()
        self.in_use += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_use -= 1
        self._slots.release()


class SlowJobs:
    """The demotion rule: a job with more than ten sends over half a second in a minute is slow until it ends."""

    def __init__(self) -> None:
        self._minute = -1
        self._slow_sends: Counter[JobId] = Counter()

    def note(self, job_id: JobId, took_s: float, now_ms: int) -> None:
        """A send of the job, the router's questions included, took so long."""
        if took_s > _SLOW_SEND_S:
            self._turn_to(now_ms)
            self._slow_sends[job_id] += 1

    def is_slow(self, job_id: JobId, now_ms: int) -> bool:
        self._turn_to(now_ms)
        return self._slow_sends[job_id] > _SLOW_SENDS if self._slow_sends else False

    def _turn_to(self, now_ms: int) -> None:
        minute = now_ms // 60_000
        if minute != self._minute:
            self._minute = minute
            self._slow_sends.clear()
