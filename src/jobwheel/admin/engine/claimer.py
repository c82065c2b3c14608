"""The claims of a node: one after the other until nothing due is left; nothing is sent before the commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Concatenate, ParamSpec

from jobwheel.admin.domain.ids import JobId, NodeId
from jobwheel.admin.domain.job import DueJob
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.claim import Claimed, ClaimLimits, claim, claim_alone, jobs_to_claim, stop_refused, try_out
from jobwheel.admin.engine.pace import TIME_TO_YIELD_MS, yielding
from jobwheel.admin.engine.suspects import REFUSED_S, Suspects
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

Arguments = ParamSpec("Arguments")


@dataclass(slots=True)
class _Pass:
    """What a pass has done so far: how many runs it planned, and whether the database takes any."""

    planned: int = 0
    works: bool = False


class Claimer:
    """Claims what is due and hands the committed runs to `fly`.

    `node_id` is asked at each claim, since a node that was declared dead goes on under a new id; so is `is_behind`,
    whether sends are: overload delays them, never planning, but what is planned can leave them their turn.
    """

    def __init__(
        self,
        database: Database,
        zone: InstallationZone,
        clock: Clock,
        node_id: Callable[[], NodeId],
        fly: Callable[[Sequence[PendingRun]], object],
        limits: ClaimLimits,
        is_behind: Callable[[], bool] = lambda: False,
    ) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._node_id = node_id
        self._fly = fly
        self._given = self._limits = limits
        self._yielding = yielding(limits)
        self._is_behind = is_behind
        self._suspects = Suspects(clock)
        self._runs_per_job = 1.0
        self._earliest_ms: int | None = None
        self._between_tries = Backoff(first_s=0.01, most_s=0.04, jitter=0.5)

    async def run_once(self) -> int:
        """Claim until nothing due is left; return how many runs were planned.

        A batch that the database refuses for a row (a trigger, a value out of range) is tried again in halves until the
        job that is to blame is alone. Everyone else is planned; that job is tried alone in each pass, and stopped, with
        an event, if it is refused for `REFUSED_S`. If nobody else was planned, a run of no job is tried: if that is
        refused too, no job is to blame, and the pass fails.
        """
        so_far = _Pass()
        narrowed, more = None, True
        while more:
            self._limits = self._yielding if self._has_time() and self._is_behind() else self._given
            # As many as there will be room for, if they fire as often as the last ones: none is read in vain.
            most_jobs = narrowed or max(1, round(self._limits.most_runs / self._runs_per_job))
            left_out = self._suspects.ids()
            claimed = await self._attempt(claim, most_jobs, left_out)
            if isinstance(claimed, Claimed):
                self._runs_per_job = claimed.runs_per_job
                self._take(so_far, claimed)
                narrowed, more = None, claimed.more
            else:
                tried = await self._database.read(jobs_to_claim, self._clock, self._limits, most_jobs, left_out)
                log.warning("claimer.jobs_refused", jobs=len(tried), reason=reason_of(claimed))
                narrowed = await self._narrowed(so_far, tried, claimed)
        for job_id in self._suspects.to_try():
            await self._try_again(so_far, job_id)
        return so_far.planned

    async def _narrowed(self, so_far: _Pass, tried: Sequence[DueJob], error: Exception) -> int | None:
        """How many jobs are claimed next, after so many were refused together; None for as many as go.

        Raises:
            Exception: what the database said; it would say so of every job.
        """
        if len(tried) > 1:
            return len(tried) // 2
        if not tried or not await self._works(so_far):
            raise error
        for job in tried:
            log.warning("claimer.job_refused", job_id=job.id, reason=reason_of(error), stopped_after_s=REFUSED_S)
            self._suspects.add(job.id)
        return None

    async def _works(self, so_far: _Pass) -> bool:
        """Whether the database takes any run at all."""
        so_far.works = so_far.works or not isinstance(await self._attempt(try_out), Exception)
        return so_far.works

    def _has_time(self) -> bool:
        """Whether planning is ahead by so much that it can let others go first: what it is late with is a misfire."""
        return self._earliest_ms is None or self._earliest_ms - self._clock.now() >= TIME_TO_YIELD_MS

    def _take(self, so_far: _Pass, claimed: Claimed) -> None:
        self._fly(claimed.runs)
        # Of the job that is due first, and its first run.
        self._earliest_ms = claimed.runs[0].due_ms if claimed.runs else None
        so_far.planned += len(claimed.runs)
        so_far.works = so_far.works or claimed.works
        for event in claimed.events:
            log.warning(event.kind.value, job_id=event.job_id, **event.details)

    async def _try_again(self, so_far: _Pass, job_id: JobId) -> None:
        """Claim a job alone that was refused; stop it if that has lasted for long.

        Raises:
            Exception: what the database said; it would say so of every job.
        """
        claimed = await self._attempt(claim_alone, job_id)
        if isinstance(claimed, Claimed):
            log.info("claimer.job_goes_on", job_id=job_id)
            self._acquit(so_far, job_id, claimed)
            return
        if not self._suspects.refused_again(job_id):
            return
        if not await self._works(so_far):
            raise claimed
        stopped = await self._attempt(stop_refused, job_id, reason_of(claimed))
        if isinstance(stopped, Claimed):
            self._acquit(so_far, job_id, stopped)
            return
        log.error("claimer.job_cannot_be_stopped", job_id=job_id, reason=reason_of(claimed), error=reason_of(stopped))
        self._suspects.let_be(job_id)

    def _acquit(self, so_far: _Pass, job_id: JobId, claimed: Claimed) -> None:
        self._suspects.acquit(job_id)
        self._take(so_far, claimed)

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
