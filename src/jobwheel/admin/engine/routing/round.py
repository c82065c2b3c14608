"""ROUND: one address after the other, by a counter per job."""

import random
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.routing.base import Candidate

_FORGET_AFTER_MS = 24 * 3600 * 1000


class Round:
    """A counter per job that starts at a random offset, so that many jobs do not all begin at the same address."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._counters: dict[JobId, tuple[int, int]] = {}

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        counter, _ = self._counters.get(job_id) or (self._source.randrange(len(candidates)), now_ms)
        self._counters[job_id] = (counter + 1, now_ms)
        start = counter % len(candidates)
        return [*candidates[start:], *candidates[:start]]

    def forget_unused(self, now_ms: int) -> None:
        before_ms = now_ms - _FORGET_AFTER_MS
        for job_id in [job_id for job_id, (_, used_ms) in self._counters.items() if used_ms < before_ms]:
            del self._counters[job_id]
