"""The claims of a node: one after the other until nothing due is left; nothing is sent before the commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Concatenate, ParamSpec

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.claim import Claimed, ClaimLimits, claim, claim_alone, jobs_to_claim, stop_refused
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database, is_outage, reason_of
from jobwheel.admin.store.errors import ScheduleLockedError
from jobwheel.admin.store.zone import InstallationZone
from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

# Another node holds the lock for milliseconds, but one with much to claim takes it again at once: the pauses between
# tries are short, so that one of them falls between two of its claims. Whoever holds it for longer than all of them
# fails the pass, which health and log tell.
_LOCK_TRIED_S = 3.0
_LEAST_AHEAD_S = 2.0
_CLAIMED_AHEAD = 0.6
_MOST_REFUSED = 10
"""Jobs that are refused before one is not: then it is not theirs, and a pass must not go on for ever."""
_LET_BE_S = 60.0
"""A job that can be neither claimed nor stopped is looked at so seldom."""

Arguments = ParamSpec("Arguments")


def claimed_ahead_s(look_ahead_s: float) -> float:
    """How long before its next time a job is claimed: most of the look-ahead, and two passes at least.

    So a job of every second, planned for the whole look-ahead each time, costs a claim each few seconds, not each; and
    passes that fail for a while, because somebody else holds the lock, make nothing late.
    """
    return min(look_ahead_s, max(_LEAST_AHEAD_S, look_ahead_s * _CLAIMED_AHEAD))


@dataclass(slots=True)
class _Pass:
    """What a pass has done so far: how many runs it planned, whether any job could be claimed, which were refused."""

    planned: int = 0
    works: bool = False
    refused: list[tuple[DueJob, Exception]] = field(default_factory=list)


class Claimer:
    """Claims what is due and hands the committed runs to `fly`.

    `node_id` is asked at each claim, since a node that was declared dead goes on under a new id.
    """

    def __init__(
        self,
        database: Database,
        zone: InstallationZone,
        clock: Clock,
        node_id: Callable[[], NodeId],
        fly: Callable[[Sequence[PendingRun]], object],
        limits: ClaimLimits,
    ) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._node_id = node_id
        self._fly = fly
        self._limits = limits
        self._let_be: dict[JobId, float] = {}
        self._runs_per_job = 1.0
        self._between_tries = Backoff(first_s=0.01, most_s=0.04, jitter=0.5)

    async def run_once(self) -> int:
        """Claim until nothing due is left; return how many runs were planned.

        A batch that the database refuses for a row (a trigger, a value out of range) is tried again in halves until the
        job that is to blame is alone. Everyone else is planned, and then that job is stopped, with an event. If nobody
        else could be planned, no job is to blame, and the pass fails.
        """
        so_far = _Pass()
        narrowed, more = None, True
        while more:
            # As many as there will be room for, if they fire as often as the last ones: none is read in vain.
            most_jobs = narrowed or max(1, round(self._limits.most_runs / self._runs_per_job))
            left_out = self._left_out(so_far)
            claimed = await self._attempt(claim, most_jobs, left_out)
            if isinstance(claimed, Claimed):
                self._runs_per_job = claimed.runs_per_job
                self._take(so_far, claimed)
                narrowed, more = None, claimed.more
            else:
                tried = await self._database.read(jobs_to_claim, self._clock, self._limits, most_jobs, left_out)
                log.warning("claimer.jobs_refused", jobs=len(tried), reason=reason_of(claimed))
                narrowed = _narrowed(so_far, tried, claimed)
        for job, error in so_far.refused:
            if not so_far.works:
                raise error
            await self._stop_refused(so_far, job, reason_of(error))
        return so_far.planned

    def _take(self, so_far: _Pass, claimed: Claimed) -> None:
        self._fly(claimed.runs)
        so_far.planned += len(claimed.runs)
        so_far.works = so_far.works or claimed.works
        for event in claimed.events:
            log.warning(event.kind.value, job_id=event.job_id, **event.details)

    def _left_out(self, so_far: _Pass) -> set[JobId]:
        """The jobs that are not to be looked at now."""
        now_s = self._clock.monotonic()
        self._let_be = {job_id: until_s for job_id, until_s in self._let_be.items() if now_s < until_s}
        return {job.id for job, _ in so_far.refused}.union(self._let_be)

    async def _stop_refused(self, so_far: _Pass, job: DueJob, reason: str) -> None:
        """Stop a job that is refused still, now that others were planned."""
        claimed = await self._attempt(claim_alone, job)
        if not isinstance(claimed, Claimed):
            claimed = await self._attempt(stop_refused, job, reason)
        if isinstance(claimed, Claimed):
            self._take(so_far, claimed)
            return
        log.error("claimer.job_cannot_be_stopped", job_id=job.id, reason=reason, error=reason_of(claimed))
        self._let_be[job.id] = self._clock.monotonic() + _LET_BE_S

    async def _attempt(
        self,
        work: Callable[Concatenate[Connection, InstallationZone, Clock, NodeId, ClaimLimits, Arguments], Claimed],
        *args: Arguments.args,
        **kwargs: Arguments.kwargs,
    ) -> Claimed | Exception:
        """What a transaction under the lock did, or the error for which a row may be to blame."""
        until_s, tries = self._clock.monotonic() + _LOCK_TRIED_S, 0
        while True:
            try:
                return await self._database.write_batch(
                    work, self._zone, self._clock, self._node_id(), self._limits, *args, **kwargs
                )
            except ScheduleLockedError:
                if self._clock.monotonic() >= until_s:
                    raise
                tries += 1
                await self._clock.wait(self._between_tries.delay_s(tries))
            except Exception as error:
                if is_outage(error):
                    raise
                return error


def _narrowed(so_far: _Pass, tried: Sequence[DueJob], error: Exception) -> int | None:
    """How many jobs are claimed next, after so many were refused together; None for as many as go."""
    if len(tried) > 1:
        return len(tried) // 2
    so_far.refused += [(job, error) for job in tried]
    if not tried or (not so_far.works and len(so_far.refused) == _MOST_REFUSED):
        raise error
    return None
