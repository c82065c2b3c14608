from collections.abc import AsyncIterator, Sequence

import pytest

from jobwheel.admin.domain.run import PendingRun
from jobwheel.admin.engine.wheel import TimingWheel
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.engine_parts import NOW_MS, pending_run


class Departures:
    def __init__(self) -> None:
        self.clock = FakeClock(NOW_MS)
        self.batches: list[list[int]] = []
        self.early: list[int] = []
        self.wheel = TimingWheel(self._left, self.clock, capacity=100)

    def _left(self, due: Sequence[PendingRun]) -> None:
        self.batches.append([run.id for run in due])
        self.early += [run.id for run in due if run.due_ms > self.clock.now()]

    @property
    def ids(self) -> list[int]:
        return [run_id for batch in self.batches for run_id in batch]


@pytest.fixture
async def out() -> AsyncIterator[Departures]:
    departures = Departures()
    await departures.wheel.start()
    yield departures
    await departures.wheel.stop()


async def test_a_run_leaves_at_its_time_and_not_before(out: Departures) -> None:
    out.wheel.add([pending_run(1, NOW_MS + 500)])
    await out.clock.advance(0.499)
    assert out.ids == []
    await out.clock.advance(0.001)
    assert out.ids == [1]
    await out.clock.advance(60)
    assert out.ids == [1]


async def test_runs_of_one_instant_leave_as_one_batch_in_the_order_of_arrival(out: Departures) -> None:
    out.wheel.add([pending_run(3, NOW_MS + 10), pending_run(1, NOW_MS + 10), pending_run(2, NOW_MS + 10)])
    await out.clock.advance(1)
    assert out.batches == [[3, 1, 2]]


async def test_runs_leave_in_the_order_of_their_times(out: Departures) -> None:
    out.wheel.add([pending_run(n, NOW_MS + 1000 - n * 7) for n in range(50)])
    await out.clock.advance(2)
    assert out.ids == list(range(49, -1, -1))


async def test_an_overdue_run_leaves_at_once(out: Departures) -> None:
    await out.clock.advance(0)
    out.wheel.add([pending_run(1, NOW_MS - 60_000), pending_run(2, NOW_MS)])
    await out.clock.advance(0)
    assert out.ids == [1, 2]


async def test_an_earlier_run_that_comes_later_is_not_held_up(out: Departures) -> None:
    out.wheel.add([pending_run(1, NOW_MS + 400)])
    await out.clock.advance(0.1)
    out.wheel.add([pending_run(2, NOW_MS + 150)])
    await out.clock.advance(0.05)
    assert out.ids == [2]


async def test_a_forward_step_lets_out_what_has_come_due_within_half_a_second(out: Departures) -> None:
    out.wheel.add([pending_run(1, NOW_MS + 3_000_000), pending_run(2, NOW_MS + 3_700_000)])
    await out.clock.advance(0)
    out.clock.step(3600)
    await out.clock.advance(0.5)
    assert out.ids == [1]


async def test_a_backward_step_lets_nothing_out_early(out: Departures) -> None:
    out.wheel.add([pending_run(1, NOW_MS + 1000)])
    await out.clock.advance(0.9)
    out.clock.step(-10)
    await out.clock.advance(9)
    assert out.ids == []
    await out.clock.advance(1.1)
    assert out.ids == [1]
    assert out.early == []


async def test_ids_that_are_held_are_left_out_until_they_are_forgotten(out: Departures) -> None:
    assert out.wheel.add([pending_run(1, NOW_MS + 10)]) == 1
    assert out.wheel.add([pending_run(1, NOW_MS + 10)]) == 0
    await out.clock.advance(1)
    assert out.ids == [1]
    assert out.wheel.holds(pending_run(1).id)
    assert out.wheel.add([pending_run(1, NOW_MS)]) == 0
    out.wheel.forget([pending_run(1).id])
    assert len(out.wheel) == 0
    assert out.wheel.add([pending_run(1, NOW_MS)]) == 1


async def test_no_more_than_fit_go_in(out: Departures) -> None:
    many = [pending_run(n, NOW_MS + 5000) for n in range(150)]
    assert out.wheel.add(many) == 100
    assert (len(out.wheel), out.wheel.room) == (100, 0)
    out.wheel.forget(run.id for run in many[:30])
    assert out.wheel.room == 30


async def test_clear_takes_out_what_has_not_come_due(out: Departures) -> None:
    out.wheel.add([pending_run(1, NOW_MS), pending_run(3, NOW_MS + 2000), pending_run(2, NOW_MS + 1000)])
    await out.clock.advance(0)
    assert [run.id for run in out.wheel.clear()] == [2, 3]
    assert [out.wheel.holds(pending_run(n).id) for n in (1, 2, 3)] == [True, False, False]
    await out.clock.advance(5)
    assert out.ids == [1]
