"""FAILOVER: the first address that says it is alive."""

from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.base import Asker, Chosen
from jobwheel.admin.engine.routing.probing import first_yes


class Failover:
    """Asks `/beat`, one address after the other; those that cannot be reached or keep silent are passed over."""

    async def choose(self, job_id: JobId, candidates: Sequence[Candidate], ask: Asker) -> Chosen:  # noqa: ARG002 - a strategy's signature
        return await first_yes(candidates, ask, ask.beat)
