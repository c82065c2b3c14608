"""The timing wheel: holds runs until their due time and lets each out once, never early, in order."""

import asyncio
import heapq
from collections.abc import Callable, Iterable, Sequence

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.service import Service

_LONGEST_WAIT_S = 0.5


class TimingWheel(Service):
    """Slots of one millisecond, each leaving as one batch.

    `on_due` gets the runs that came due, in the order of due time and arrival. The wheel remembers the ids it has let
    out until `forget`, so that a run which is read again from the database meanwhile is not let out twice.
    """

    def __init__(self, on_due: Callable[[Sequence[PendingRun]], None], clock: Clock, capacity: int) -> None:
        super().__init__("wheel", clock)
        self._on_due = on_due
        self._capacity = capacity
        self._slots: dict[int, list[PendingRun]] = {}
        self._times: list[int] = []
        self._held: set[RunId] = set()
        self._earlier = asyncio.Event()

    def __len__(self) -> int:
        """How many runs are held: those in slots, and those let out and not forgotten yet."""
        return len(self._held)

    @property
    def room(self) -> int:
        """How many more runs fit in; what does not stays in the database, and the feeder brings it later."""
        return max(0, self._capacity - len(self._held))

    def count_due(self, now_ms: int) -> int:
        """How many of the runs held have come due at the moment; epoch milliseconds."""
        return len(self._held) - sum(len(slot) for time_ms, slot in self._slots.items() if time_ms > now_ms)

    def holds(self, run_id: RunId) -> bool:
        return run_id in self._held

    def add(self, runs: Iterable[PendingRun]) -> int:
        """Put runs in; ids that are held already and runs beyond the capacity are left out. Returns how many are in."""
        added = 0
        for run in runs:
            if run.id in self._held:
                continue
            if len(self._held) >= self._capacity:
                break
            self._held.add(run.id)
            self._into_slot(run)
            added += 1
        return added

    def forget(self, run_ids: Iterable[RunId]) -> None:
        """The runs' take-off is decided: the wheel need not know them any more."""
        self._held.difference_update(run_ids)

    def clear(self) -> list[PendingRun]:
        """Take out every run that has not come due."""
        left = [run for time_ms in sorted(self._slots) for run in self._slots[time_ms]]
        self._slots.clear()
        self._times.clear()
        self.forget(run.id for run in left)
        return left

    def forget_all(self) -> None:
        """None of the runs held, or let out and not decided yet, is this node's any more."""
        self.clear()
        self._held.clear()

    def _into_slot(self, run: PendingRun) -> None:
        slot = self._slots.get(run.due_ms)
        if slot is not None:
            slot.append(run)
            return
        self._slots[run.due_ms] = [run]
        heapq.heappush(self._times, run.due_ms)
        if self._times[0] == run.due_ms:
            self._earlier.set()

    async def on_start(self) -> None:
        self.supervise("turn", self._turn)

    async def _turn(self) -> None:
        while True:
            self._earlier.clear()
            due = self.take_due()
            if due:
                self._on_due(due)
            await self.clock.wait(self._wait_s(), self._earlier)

    def take_due(self) -> list[PendingRun]:
        """Take out the runs whose due time has come by the host's clock."""
        now_ms = self.clock.now()
        due: list[PendingRun] = []
        while self._times and self._times[0] <= now_ms:
            due.extend(self._slots.pop(heapq.heappop(self._times)))
        return due

    def _wait_s(self) -> float:
        # Bounded, since the wall clock may be stepped while the monotonic one is waited on.
        if not self._times:
            return _LONGEST_WAIT_S
        return min(_LONGEST_WAIT_S, max(0.0, (self._times[0] - self.clock.now()) / 1000))
