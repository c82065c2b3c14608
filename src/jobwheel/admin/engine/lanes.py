"""Lanes: how many sends are under way at once, and which jobs go where."""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.fair_slots import FairSlots

MOST_IN_TAKE_OFF = 1000

_HELD_BACK_SHARE = 10
_MANY = MOST_IN_TAKE_OFF // 2


class Lane:
    """A queue of runs that came due, and slots for the requests under way (the router's questions included).

    Groups share the slots: one with a thousand addresses at which every request hangs leaves some to the others.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.limit = limit
        self._slots = FairSlots[GroupId](limit)
        self._called: deque[PendingRun] = deque()
        self._held_back: deque[PendingRun] = deque()
        self._queue: deque[PendingRun] = deque()
        self._some = asyncio.Event()
        self._many = asyncio.Event()

    @property
    def in_use(self) -> int:
        """How many requests have a slot."""
        return self._slots.in_use

    def __len__(self) -> int:
        """How many runs wait to take off."""
        return len(self._called) + len(self._held_back) + len(self._queue)

    def put(self, runs: Sequence[PendingRun]) -> None:
        if runs:
            self._queue.extend(runs)
            self._note()

    def call(self, runs: Sequence[PendingRun]) -> None:
        """It is the turn of runs that waited elsewhere: they are next, after those that were called before."""
        if runs:
            self._called.extend(runs)
            self._note()

    def put_first(self, runs: Sequence[PendingRun]) -> None:
        """Runs that had their turn and could not use it: they are next again."""
        if runs:
            self._called.extendleft(reversed(runs))
            self._note()

    def hold_back(self, runs: Sequence[PendingRun]) -> None:
        """Runs that a take-off had no room for: they have the next one's, but keep nobody else from it."""
        if runs:
            self._held_back.extend(runs)
            self._note()

    async def ready(self) -> None:
        """Return once a run waits."""
        await self._some.wait()

    async def crowded(self) -> None:
        """Return once half as many wait as take off at once."""
        await self._many.wait()

    def take(self, most: int) -> list[PendingRun]:
        """The runs whose turn it is: those that were called, some that were held back, those that waited longest."""
        held_back = min(len(self._held_back), max(1, most // _HELD_BACK_SHARE))
        taken = [self._called.popleft() for _ in range(min(len(self._called), most - held_back))]
        taken += [self._held_back.popleft() for _ in range(held_back)]
        taken += [self._queue.popleft() for _ in range(min(len(self._queue), most - len(taken)))]
        self._note()
        return taken

    def clear(self) -> None:
        """Forget the runs that wait; slots stay with the requests that have them."""
        self._called.clear()
        self._held_back.clear()
        self._queue.clear()
        self._note()

    def _note(self) -> None:
        waiting = len(self)
        for event, least in ((self._some, 1), (self._many, _MANY)):
            if waiting < least:
                event.clear()
            else:
                event.set()

    async def enter(self, group_id: GroupId) -> None:
        """Take a slot for a run of the group, when it is its turn. Whoever has it calls `leave`."""
        await self._slots.acquire(group_id)

    def leave(self, group_id: GroupId) -> None:
        """Give a slot of the group back."""
        self._slots.release(group_id)


class SlowJobs:
    """The demotion rule: a job with more than so many slow sends in a minute is slow until the minute ends.

    A send is slow that takes longer than `slow_send_s`, the router's questions included.
    """

    def __init__(self, slow_send_s: float, slow_sends: int) -> None:
        self._slow_send_s = slow_send_s
        self._most = slow_sends
        self._minute = -1
        self._slow_sends: Counter[JobId] = Counter()

    def note(self, job_id: JobId, took_s: float, now_ms: int) -> None:
        """A send of the job, the router's questions included, took so long."""
        if took_s > self._slow_send_s:
            self._turn_to(now_ms)
            self._slow_sends[job_id] += 1

    def is_slow(self, job_id: JobId, now_ms: int) -> bool:
        self._turn_to(now_ms)
        return self._slow_sends[job_id] > self._most if self._slow_sends else False

    def sorted_out(self, runs: Sequence[PendingRun], now_ms: int) -> tuple[Sequence[PendingRun], Sequence[PendingRun]]:
        """The runs of jobs that are not slow, and those of jobs that are."""
        slow = [run for run in runs if self.is_slow(run.job_id, now_ms)]
        return ([run for run in runs if not self.is_slow(run.job_id, now_ms)], slow) if slow else (runs, slow)

    def _turn_to(self, now_ms: int) -> None:
        minute = now_ms // 60_000
        if minute != self._minute:
            self._minute = minute
            self._slow_sends.clear()
