"""Lets the recovery look at a run when a test wants it to."""

from jobwheel.admin.domain.ids import RunId
from tests.support.live_admin import LiveAdmin, until


async def look_now(live: LiveAdmin, run_id: RunId, silent_ms: int = 0) -> None:
    """Let the recovery look at the run, as if nothing had been heard of it for so long."""
    # What a pass under way learnt about the run would move its next look away again.
    live.admin.engine._recovering.wake()
    await _passes_end(live, 1)
    now_ms = live.admin.database.now_ms()
    columns = {"unheard_ms": now_ms - silent_ms} if silent_ms else {}
    if silent_ms:
        may_judge(live)
    await live.change_run(run_id, check_ms=now_ms, **columns)
    # Not only with the next pass, a second later.
    live.admin.engine._recovering.wake()


async def looked(live: LiveAdmin) -> None:
    """Return once the recovery has gone over all that is due at this moment."""
    # The end of the first may be that of one under way.
    await _passes_end(live, 2)


async def _passes_end(live: LiveAdmin, count: int) -> None:
    recovering = live.admin.engine._recovering
    passes = recovering.passes + count
    await until(lambda: recovering.passes >= passes)


def may_judge(live: LiveAdmin) -> None:
    """Let the node have been there for an hour: else it takes no silence for an answer."""
    node = live.admin.engine._context.node
    node._unbroken_since_s = live.admin.database.clock.boot_time() - 3600


def may_not_judge(live: LiveAdmin) -> None:
    """Let the node have had a break just now."""
    live.admin.engine._context.node._unbroken_since_s = live.admin.database.clock.boot_time()
