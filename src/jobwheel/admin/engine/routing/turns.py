"""What a strategy has chosen for runs that then did not fly."""

from collections.abc import Sequence
from typing import Final

from jobwheel.admin.domain.ids import JobId, RunId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory

_SIZE: Final = 10
"""What an order takes beside its candidates, counted in candidates."""

_Order = Sequence[Candidate]


class Turns:
    """The orders of runs over their job's limit: of those that wait, and of one of a job that was discarded.

    To choose anew each time would be a turn of the strategy that no run takes: of two executors `ROUND` would give one
    the runs, and the other those that are sent back.
    """

    def __init__(self) -> None:
        self._waiting = Memory[RunId, _Order]()
        self._passed_on = Memory[JobId, _Order]()

    def keep(self, run_id: RunId, order: _Order, now_ms: int) -> None:
        """The run waits; this is what was chosen for it."""
        self._waiting.put(run_id, order, _SIZE + len(order), now_ms)

    def pass_on(self, job_id: JobId, order: _Order, now_ms: int) -> None:
        """A run of the job was discarded; the next one has its turn."""
        self._passed_on.put(job_id, order, _SIZE + len(order), now_ms)

    def take(self, run_id: RunId, job_id: JobId, candidates: _Order, now_ms: int) -> _Order | None:
        """What was chosen of these candidates; None if nothing was, or of others: those that came are to have runs."""
        order = self._waiting.get(run_id, now_ms)
        if order is None:
            order = self._passed_on.get(job_id, now_ms)
            self._passed_on.remove(job_id)
        if order is None or len(order) != len(candidates) or set(order) != set(candidates):
            return None
        return order

    def forget_unused(self, now_ms: int) -> None:
        """Drop what was chosen a day ago."""
        self._waiting.forget_unused(now_ms)
        self._passed_on.forget_unused(now_ms)
