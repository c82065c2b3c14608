"""The claims of a node: one after the other until nothing due is left; nothing is sent before the commit."""

from collections.abc import Callable, Sequence

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.claim import Claimed, ClaimLimits, claim
from jobwheel.admin.store.database import Database
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


def claimed_ahead_s(look_ahead_s: float) -> float:
    """How long before its next time a job is claimed: most of the look-ahead, and two passes at least.

    So a job of every second, planned for the whole look-ahead each time, costs a claim each few seconds, not each; and
    passes that fail for a while, because somebody else holds the lock, make nothing late.
    """
    return min(look_ahead_s, max(_LEAST_AHEAD_S, look_ahead_s * _CLAIMED_AHEAD))


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
        self._runs_per_job = 1.0
        self._between_tries = Backoff(first_s=0.01, most_s=0.04, jitter=0.5)

    async def run_once(self) -> int:
        """Claim until nothing due is left; return how many runs were planned."""
        planned = 0
        while True:
            claimed = await self._claim_surely()
            self._fly(claimed.runs)
            planned += len(claimed.runs)
            for event in claimed.events:
                log.warning(event.kind.value, job_id=event.job_id, **event.details)
            if not claimed.more:
                return planned

    async def _claim_surely(self) -> Claimed:
        until_s, tries = self._clock.monotonic() + _LOCK_TRIED_S, 0
        while True:
            try:
                # As many as there will be room for, if they fire as often as the last ones: none is read in vain.
                most_jobs = max(1, round(self._limits.most_runs / self._runs_per_job))
                claimed = await self._database.write_batch(
                    claim, self._zone, self._clock, self._node_id(), self._limits, most_jobs
                )
            except ScheduleLockedError:
                if self._clock.monotonic() >= until_s:
                    raise
                tries += 1
                await self._clock.wait(self._between_tries.delay_s(tries))
            else:
                self._runs_per_job = claimed.runs_per_job
                return claimed
