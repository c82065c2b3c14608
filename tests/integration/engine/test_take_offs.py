"""Take-offs of a lane in which many runs wait: the next finds its routes while one is written."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.engine.lanes import MOST_IN_TAKE_OFF
from jobwheel.admin.store.take_off import take_off
from tests.support.due_runs import all_done, write_due
from tests.support.live_admin import LiveAdmin, until

COUNT = MOST_IN_TAKE_OFF * 3 // 2


class HeldTakeOffs:
    """Holds the first take-off of an admin until it is told how it is to end, and tells of which runs all are."""

    def __init__(self, live: LiveAdmin, monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
        self._write = live.admin.database.write
        self._error = error
        self.go_on = asyncio.Event()
        self.begun: list[Sequence[int]] = []
        self.done: list[int] = []
        monkeypatch.setattr(live.admin.database, "write", self._held)

    async def _held(self, work: Callable[..., Any], *args: Any) -> Any:
        if work is not take_off:
            return await self._write(work, *args)
        ids = [each.run_id for each in args[-1].take_offs]
        self.begun.append(ids)
        if len(self.begun) == 1:
            await self.go_on.wait()
            if self._error is not None:
                raise self._error
        answer = await self._write(work, *args)
        self.done += ids
        return answer


@pytest.mark.parametrize("error", [None, OSError("in a test")], ids=["written", "not written"])
async def test_the_second_half_waits_for_the_first_and_does_not_overtake_it(
    live: LiveAdmin, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    # Nowhere to send them: no slot of an address holds any of them back.
    await live.admin.services.groups.create({"app_name": "orders", "title": "Orders"}, actor="test")
    job = await live.job()
    launcher = live.admin.engine.launcher
    held = HeldTakeOffs(live, monkeypatch, error)
    run_ids = await write_due(live, job, COUNT)
    # The rest has left the lane to find its routes, and is not written.
    await until(lambda: len(held.begun) == 1 and not launcher.waiting)
    held.go_on.set()
    found = await all_done(live, job)
    assert held.done == run_ids
    assert [len(each) for each in held.begun][-2:] == [MOST_IN_TAKE_OFF, COUNT - MOST_IN_TAKE_OFF]
    assert {run.outcome for run in found} == {Outcome.FAILED}
