"""ROUND: one address after the other, by a counter per job."""

import random
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory


class Round:
    """A counter per job that starts at a random offset, so that many jobs do not all begin at the same address."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._counters = Memory[JobId, int]()

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        counter = self._counters.get(job_id, now_ms)
        if counter is None:
            counter = self._source.randrange(len(candidates))
        self._counters.put(job_id, counter + 1, 1, now_ms)
        start = counter % len(candidates)
        return [*candidates[start:], *candidates[:start]]

    def forget_unused(self, now_ms: int) -> None:
        self._counters.forget_unused(now_ms)
