"""Brings pending runs that come due into the wheel: own ones it does not hold, and those that nobody owns."""

from collections.abc import Callable, Sequence

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.context import EngineContext
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.admin.store import limits, runs


class Feeder:
    """Looks each second; what the wheel has no room for stays in the database until it has."""

    def __init__(self, context: EngineContext, wheel: TimingWheel, put_off_jobs: Callable[[], Sequence[JobId]]) -> None:
        self._context = context
        self._wheel = wheel
        self._put_off_jobs = put_off_jobs

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
        if not self._wheel.room:
            return 0
        fed = 0
        # As many ids as the wheel may hold: those it holds already are among the earliest.
        most, put_off = context.limits.wheel_capacity, self._put_off_jobs()
        due = await database.read(runs.own_pending_ids, node_id, horizon_ms, most, put_off)
        wanted = [run_id for run_id in due if not self._wheel.holds(run_id)]
        for first in range(0, min(len(wanted), self._wheel.room), context.limits.claim_batch):
            chunk = wanted[first : first + context.limits.claim_batch]
            fed += self._wheel.add(await database.read(runs.load_pending, node_id, chunk))
        return fed
