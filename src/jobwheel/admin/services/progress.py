"""How far runs are, as their executors say: in memory alone, and no result."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from jobwheel.admin.domain.ids import GroupId, RunId
from jobwheel.admin.domain.run import Run
from jobwheel.kernel.clock import Clock
from jobwheel.wire.messages import Progress

MOST_RUNS: Final = 10_000
"""Of how many runs the progress is kept; beyond that, what was heard longest ago is forgotten."""

MOST_TEXT: Final = 1000
"""How many characters of a run's words are kept."""

KEPT_S: Final = 3600.0


_Key = tuple[GroupId | None, RunId]


@dataclass(frozen=True, slots=True)
class RunProgress:
    """The last that was heard of a run: a fraction from 0 to 1, and words. `at_ms` by this node's clock."""

    fraction: float
    text: str
    at_ms: int


class ProgressBook:
    """The last progress of each run, for an hour. Of a cluster, the node that was told knows it.

    What came with a group's own credentials is kept apart, and is shown for runs of that group alone.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # In the order in which they were heard, each with the monotonic time.
        self._kept: OrderedDict[_Key, tuple[float, RunProgress]] = OrderedDict()

    def note(self, told: Sequence[Progress], group_id: GroupId | None = None) -> None:
        """Keep these as the last of their runs. Whether there are such runs (of the group) is not looked at."""
        at_ms, now_s = self._clock.now(), self._clock.monotonic()
        for each in told:
            key = (group_id, RunId(each.log_id))
            self._kept[key] = now_s, RunProgress(each.fraction, each.text[:MOST_TEXT], at_ms)
            self._kept.move_to_end(key)
            if len(self._kept) > MOST_RUNS:
                self._kept.popitem(last=False)
        self._forget_old(now_s)

    def of(self, run: Run) -> RunProgress | None:
        """How far a run is; None once it is done, or if nothing was heard of it for an hour."""
        self._forget_old(self._clock.monotonic())
        if run.phase is None:
            # Ended by another node, by a kill or by a rule: nobody told this book.
            self.forget([run.id])
            self.forget([run.id], run.group_id)
            return None
        heard = [self._kept[key] for key in ((None, run.id), (run.group_id, run.id)) if key in self._kept]
        return max(heard, key=lambda each: each[0])[1] if heard else None

    def forget(self, run_ids: Iterable[RunId], group_id: GroupId | None = None) -> None:
        """These runs have ended, as far as whoever told so may say it."""
        for run_id in run_ids:
            self._kept.pop((group_id, run_id), None)

    def _forget_old(self, now_s: float) -> None:
        while self._kept:
            heard_s, _ = next(iter(self._kept.values()))
            if now_s - heard_s < KEPT_S:
                return
            self._kept.popitem(last=False)
