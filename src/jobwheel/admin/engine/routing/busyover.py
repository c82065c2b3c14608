"""BUSYOVER: the first address where the job is idle."""

import functools
from collections.abc import Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.addresses import Candidate
from jobwheel.admin.engine.routing.base import Asker, Chosen
from jobwheel.admin.engine.routing.probing import first_yes


class Busyover:
    """Asks `/idleBeat`, one address after the other; those that are busy, out of reach or silent are passed over."""

    async def choose(self, job_id: JobId, candidates: Sequence[Candidate], ask: Asker) -> Chosen:
        return await first_yes(candidates, ask, functools.partial(ask.idle_beat, job_id))
