"""RANDOM: any address, each as likely as the others."""

import random
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate


class RandomChoice:
    """Uniformly random; the others in a random order too."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:  # noqa: ARG002 - a strategy's signature
        return self._source.sample(candidates, len(candidates))

    def forget_unused(self, now_ms: int) -> None:
        """Remembers nothing."""
