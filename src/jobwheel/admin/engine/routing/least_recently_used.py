"""LEAST_RECENTLY_USED: the address that this job has not been sent to for longest."""

import random
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.memory import Memory


class LeastRecentlyUsed:
    """The addresses of each job in the order of their last use.

    One that was never used comes before all others; of several such a random one, so that many jobs do not all begin
    at the same address.
    """

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._uses = Memory[JobId, tuple[str, ...]]()

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:
        used = self._uses.get(job_id, now_ms) or ()
        there = {each.address: each for each in candidates}
        order = [address for address in used if address in there]
        if len(order) < len(there):
            unused = list(there.keys() - set(used))
            order = [*self._source.sample(sorted(unused), len(unused)), *order]
        self._uses.put(job_id, (*order[1:], order[0]), len(order), now_ms)
        return [there[address] for address in order]

    def forget_unused(self, now_ms: int) -> None:
        self._uses.forget_unused(now_ms)
