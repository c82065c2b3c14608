"""LEAST_FREQUENTLY_USED: the address that this job was sent to least often."""

import random
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory


class LeastFrequentlyUsed:
    """Counts per job and address, by how much each is above the lowest.

    A new address starts at a random count below the number of addresses: many jobs do not all begin at the same one,
    and since the others' counts are relative, it does not get every run until it has caught up with their past.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._counts = Memory[JobId, dict[str, int]]()

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        counts = self._current(self._counts.get(job_id, now_ms) or {}, candidates)
        order = sorted(candidates, key=lambda each: counts[each.address])
        counts[order[0].address] += 1
        self._counts.put(job_id, counts, len(counts), now_ms)
        return order

    def forget_unused(self, now_ms: int) -> None:
        self._counts.forget_unused(now_ms)

    def _current(self, before: dict[str, int], candidates: Sequence[Candidate]) -> dict[str, int]:
        """The counts of the addresses that are there now; those of addresses that left are dropped."""
        stayed = [before[each.address] for each in candidates if each.address in before]
        least = min(stayed, default=0)
        return {
            each.address: before[each.address] - least
            if each.address in before
            else self._source.randrange(len(candidates))
            for each in candidates
        }
