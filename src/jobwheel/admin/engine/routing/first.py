"""FIRST: the first address of the list."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate


class First:
    """Always the first address; the others in their order."""

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:  # noqa: ARG002 - a strategy's signature
        return candidates

    def forget_unused(self, now_ms: int) -> None:
        """Remembers nothing."""
