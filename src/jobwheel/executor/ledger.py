"""Which runs this process knows, so that a repeated request runs nothing twice."""

import threading
from collections import Counter, OrderedDict
from enum import StrEnum

from jobwheel.kernel.clock import Clock

RunKey = tuple[int, int]
"""(log id, trigger time in epoch milliseconds): equal for the same run, however often it is sent."""

REMEMBER_S = 600.0
MOST_REMEMBERED = 100_000


class RunState(StrEnum):
    """Where a known run is."""

    OPEN = "open"
    UNREPORTED = "unreported"
    REPORTED = "reported"


class RunLedger:
    """Remembers a run while it is queued, running or unreported, and 10 minutes after. Safe to use from any thread.

    What is open or unreported is bounded by the queues and by the spool; of the reported runs the newest
    `most_remembered` are kept (for older ones the file of the run's log still tells of them).
    """

    def __init__(self, clock: Clock, most_remembered: int = MOST_REMEMBERED) -> None:
        self._clock = clock
        self._most_remembered = most_remembered
        self._lock = threading.Lock()
        self._open: set[RunKey] = set()
        self._open_ids: Counter[int] = Counter()
        self._unreported: OrderedDict[RunKey, None] = OrderedDict()
        self._reported: OrderedDict[RunKey, float] = OrderedDict()

    def state(self, key: RunKey) -> RunState | None:
        """Where the run is; None if it is not known."""
        with self._lock:
            self._forget_old()
            if key in self._open:
                return RunState.OPEN
            if key in self._unreported:
                return RunState.UNREPORTED
            return RunState.REPORTED if key in self._reported else None

    def is_open(self, log_id: int) -> bool:
        """Whether a run of this id is queued or running.

        By the id alone: other admins ask for a log with a trigger time cut to whole seconds.
        """
        with self._lock:
            return log_id in self._open_ids

    def accept(self, key: RunKey) -> None:
        """The run is queued."""
        with self._lock:
            self._open.add(key)
            self._open_ids[key[0]] += 1

    def release(self, key: RunKey) -> None:
        """The run was not accepted after all."""
        with self._lock:
            self._close(key)

    def finish(self, key: RunKey) -> None:
        """The run is over and its result is in the spool."""
        with self._lock:
            self._close(key)
            if key in self._reported:
                # An admin had the result before the thread that put it into the spool got here.
                return
            self._unreported[key] = None
            # During an outage of days the spool on the disk is what grows, not this.
            if len(self._unreported) > self._most_remembered:
                self._unreported.popitem(last=False)

    def report(self, keys: list[RunKey]) -> None:
        """An admin has the results of these runs."""
        until = self._clock.monotonic() + REMEMBER_S
        with self._lock:
            for key in keys:
                self._unreported.pop(key, None)
                self._reported[key] = until
                self._reported.move_to_end(key)
            while len(self._reported) > self._most_remembered:
                self._reported.popitem(last=False)
            self._forget_old()

    def _close(self, key: RunKey) -> None:
        if key in self._open:
            self._open.discard(key)
            self._open_ids[key[0]] -= 1
            if not self._open_ids[key[0]]:
                del self._open_ids[key[0]]

    def _forget_old(self) -> None:
        now = self._clock.monotonic()
        while self._reported:
            key, until = next(iter(self._reported.items()))
            if until > now:
                return
            del self._reported[key]

    @property
    def remembered(self) -> int:
        """How many runs are known."""
        with self._lock:
            return len(self._open) + len(self._unreported) + len(self._reported)
