"""LAST: the last address of the list."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate


class Last:
    """Always the last address; the others backwards."""

    def order(self, job_id: JobId, candidates: Sequence[Candidate], now_ms: int) -> Sequence[Candidate]:  # noqa: ARG002 - a strategy's signature
        return candidates[::-1]

    def forget_unused(self, now_ms: int) -> None:
        """Remembers nothing."""
