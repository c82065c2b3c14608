"""Lets the recovery look at a run when a test wants it to."""

from jobwheel.admin.domain.ids import RunId
from tests.support.live_admin import LiveAdmin


async def look_now(live: LiveAdmin, run_id: RunId, silent_ms: int = 0) -> None:
    """Let the recovery look at the run, as if nothing had been heard of it for so long."""
    now_ms = live.admin.database.now_ms()
    columns = {"unheard_ms": now_ms - silent_ms} if silent_ms else {}
    await live.change_run(run_id, check_ms=now_ms, **columns)
    # Not only with the next pass, a second later.
    next(loop for loop in live.admin.engine._loops if loop.name == "recovery").wake()
