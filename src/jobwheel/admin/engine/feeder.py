"""Brings pending runs that come due into the wheel: own ones it does not hold, and those that nobody owns."""

from collections.abc import Callable, Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.admin.store import limits, runs

_MOST_COUNTED = 1_000_000


class Feeder:
    """Looks each second; what the wheel has no room for stays in the database until it has."""

    def __init__(self, context: EngineContext, wheel: TimingWheel, put_off_jobs: Callable[[], Sequence[JobId]]) -> None:
        self._context = context
        self._wheel = wheel
        self._put_off_jobs = put_off_jobs
        self.left = 0
        """How many runs were due at the last look, and had to be left in the database; counted up to a million."""

    async def run_once(self) -> int:
        """Feed the wheel; return how many runs it got."""
        context = self._context
        await context.node.confirm()
        database, node_id = context.database, context.node.id
        horizon_ms = context.clock.now() + int(context.limits.look_ahead_s * 1000)
        # By a clock that is fast, what others planned would be sent before its time.
        if not context.node.clock_is_off and await database.read(runs.has_ownerless, horizon_ms):
            await database.write(runs.adopt_ownerless, node_id, horizon_ms, context.limits.claim_batch)
        if await database.read(limits.jobs_with_waiting):
            await database.write(limits.call_all, node_id)
        put_off = self._put_off_jobs()
        fed = await self._feed(horizon_ms, put_off)
        self.left = await self._count_left() if put_off or not self._wheel.room else 0
        return fed

    async def _feed(self, horizon_ms: int, put_off: Sequence[JobId]) -> int:
        if not self._wheel.room:
            return 0
        fed = 0
        given, node_id, database = self._context.limits, self._context.node.id, self._context.database
        # As many ids as the wheel may hold: those it holds already are among the earliest.
        due = await database.read(runs.own_pending_ids, node_id, horizon_ms, given.wheel_capacity, put_off)
        wanted = [run_id for run_id in due if not self._wheel.holds(run_id)]
        for first in range(0, min(len(wanted), self._wheel.room), given.claim_batch):
            chunk = wanted[first : first + given.claim_batch]
            fed += self._wheel.add(await database.read(runs.load_pending, node_id, chunk))
        return fed

    async def _count_left(self) -> int:
        now_ms, node_id = self._context.clock.now(), self._context.node.id
        due = await self._context.database.read(runs.count_own_due, node_id, now_ms, _MOST_COUNTED)
        return max(0, due - self._wheel.count_due(now_ms))
