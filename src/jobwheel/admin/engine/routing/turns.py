"""What a strategy has chosen for runs that then had to wait."""

from collections.abc import Sequence
from typing import Final

from jobwheel.admin.domain.ids import RunId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory

_SIZE: Final = 10
"""What a run takes beside its candidates, counted in candidates."""


class Turns:
    """The orders of runs over their job's limit, until they are called.

    To choose anew each time would be a turn of the strategy that no run takes: of two executors `ROUND` would give one
    the runs, and the other those that are sent back.
    """

    def __init__(self) -> None:
        self._orders = Memory[RunId, Sequence[Candidate]]()

    def keep(self, run_id: RunId, order: Sequence[Candidate], now_ms: int) -> None:
        """The run waits; this is what was chosen for it."""
        self._orders.put(run_id, order, _SIZE + len(order), now_ms)

    def get(self, run_id: RunId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate] | None:
        """What was chosen of these candidates; None if nothing was, or of others: those that came are to have runs."""
        order = self._orders.get(run_id, now_ms)
        if order is None or len(order) != len(candidates) or set(order) != set(candidates):
            return None
        return order

    def forget_unused(self, now_ms: int) -> None:
        """Drop what was chosen a day ago."""
        self._orders.forget_unused(now_ms)
