"""Lanes: how many sends are under way at once, and which jobs go where."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.domain.run import PendingRun

_SLOW_SEND_S = 0.5
_SLOW_SENDS = 10
_APPROACH = 3


class Lane:
    """A queue of runs that came due, and slots for those being sent."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self.in_use = 0
        self._queue: deque[PendingRun] = deque()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """How many runs wait for a slot."""
        return len(self._queue)

    def put(self, runs: Sequence[PendingRun]) -> None:
        self._queue.extend(runs)
        self._changed.set()

    def put_first(self, runs: Sequence[PendingRun]) -> None:
        """Runs that had their turn and could not use it: they are next again."""
        self._queue.extendleft(reversed(runs))
        self._changed.set()

    def release(self, slots: int = 1) -> None:
        self.in_use -= slots
        self._changed.set()

    async def ready(self) -> None:
        """Return once a run waits and a slot is free."""
        while not self._queue or self.in_use >= self.limit:
            self._changed.clear()
            await self._changed.wait()

    def take(self) -> list[PendingRun]:
        """The runs that wait, as many as there are free slots; each takes one."""
        count = min(len(self._queue), self.limit - self.in_use)
        self.in_use += count
        return [self._queue.popleft() for _ in range(count)]

    def clear(self) -> list[PendingRun]:
        """Take out all runs that wait."""
        left = list(self._queue)
        self._queue.clear()
        return left


class AddressSlots:
    """How many sends are under way to each address; a run beyond that is parked until one of them has landed.

    At most `limit` sends are on the wire to an address at once. A few more may have taken off and wait for the wire,
    so that it is never idle while the next take-off is being committed. A parked run takes no lane slot: one dead
    executor, at which every send waits for its time-out, holds up nobody else's runs. Nor do its parked runs fill the
    memory: of `most_parked` in all, an address that has its share has no place for more.
    """

    def __init__(self, limit: int, most_parked: int) -> None:
        self._limit = limit
        self._most_parked = most_parked
        self._most = limit * _APPROACH
        self._in_use: Counter[str] = Counter()
        self._parked: dict[str, deque[PendingRun]] = {}
        self._wires: dict[str, asyncio.Semaphore] = {}
        self.parked = 0
        """How many runs are parked."""

    def has_place(self, address: str) -> bool:
        """Whether another run of the address may be held at all, in a slot or parked."""
        return self.parked < self._most_parked or len(self._parked.get(address, ())) < self._limit

    def is_relieved(self, address: str) -> bool:
        """Whether an address that had no place has a good deal of it again."""
        return self.parked <= self._most_parked // 2 or len(self._parked.get(address, ())) < self._limit

    def take(self, address: str, run: PendingRun) -> bool:
        """Take a slot of the address for the run; False if there is none, then the run is parked."""
        if self._in_use[address] >= self._most:
            self._parked.setdefault(address, deque()).append(run)
            self.parked += 1
            return False
        self._in_use[address] += 1
        return True

    def clear_parked(self) -> None:
        """Forget the runs that are parked; slots stay with the sends that have them."""
        self._parked.clear()
        self.parked = 0

    def wire(self, address: str) -> asyncio.Semaphore:
        """Held while a send with a slot of the address is on the wire."""
        wire = self._wires.get(address)
        if wire is None:
            wire = self._wires[address] = asyncio.Semaphore(self._limit)
        return wire

    def give_back(self, address: str) -> list[PendingRun]:
        """A send has landed; return the parked runs whose turn it is: one, or all when nothing is under way there."""
        self._in_use[address] -= 1
        waiting = self._parked.get(address)
        idle = self._in_use[address] <= 0
        turn = [] if not waiting else list(waiting) if idle else [waiting.popleft()]
        self.parked -= len(turn)
        if idle:
            del self._in_use[address]
            self._wires.pop(address, None)
        if idle or not waiting:
            self._parked.pop(address, None)
        return turn


class SlowJobs:
    """The demotion rule: a job with more than ten sends over half a second in a minute is slow until it ends."""

    def __init__(self) -> None:
        self._minute = -1
        self._slow_sends: Counter[JobId] = Counter()

    def note(self, job_id: JobId, took_s: float, now_ms: int) -> None:
        """A send of the job, probes included, took so long."""
        self._turn_to(now_ms)
        if took_s > _SLOW_SEND_S:
            self._slow_sends[job_id] += 1

    def is_slow(self, job_id: JobId, now_ms: int) -> bool:
        self._turn_to(now_ms)
        return self._slow_sends[job_id] > _SLOW_SENDS if self._slow_sends else False

    def _turn_to(self, now_ms: int) -> None:
        minute = now_ms // 60_000
        if minute != self._minute:
            self._minute = minute
            self._slow_sends.clear()
