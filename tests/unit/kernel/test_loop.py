import itertools
import logging
from collections.abc import AsyncIterator

import pytest

from jobwheel.kernel.backoff import Backoff
from jobwheel.kernel.fake_clock import FakeClock, settle
from jobwheel.kernel.loop import PeriodicLoop


class Work:
    """A pass that notes when it ran and fails when it is told to."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.start = clock.monotonic()
        self.times: list[float] = []
        self.error: Exception | None = None

    async def run_once(self) -> None:
        self.times.append(round(self.clock.monotonic() - self.start, 6))
        if self.error is not None:
            raise self.error


def state(loop: PeriodicLoop) -> tuple[int, int, int, str | None]:
    return loop.passes, loop.failures, loop.failures_in_a_row, loop.last_error


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def work(clock: FakeClock) -> Work:
    return Work(clock)


@pytest.fixture
async def loop(clock: FakeClock, work: Work) -> AsyncIterator[PeriodicLoop]:
    loop = PeriodicLoop("reaper", work.run_once, 10, clock, Backoff(first_s=1, most_s=4, jitter=0))
    await loop.start()
    yield loop
    await loop.stop()


async def test_runs_at_once_and_then_each_interval(loop: PeriodicLoop, clock: FakeClock, work: Work) -> None:
    await clock.advance(35)
    assert work.times == [0, 10, 20, 30]
    assert loop.passes == 4
    assert loop.last_success_s == work.start + 30


async def test_wake_makes_the_next_pass_begin_at_once(loop: PeriodicLoop, clock: FakeClock, work: Work) -> None:
    await clock.advance(3)
    loop.wake()
    await settle()
    assert work.times == [0, 3]
    await clock.advance(10)
    assert work.times == [0, 3, 13]


async def test_a_wake_during_a_pass_is_not_lost(clock: FakeClock) -> None:
    times: list[float] = []

    async def run_once() -> None:
        times.append(clock.monotonic())
        if len(times) == 1:
            reaper.wake()

    reaper = PeriodicLoop("reaper", run_once, 10, clock)
    await reaper.start()
    await settle()
    await reaper.stop()
    assert len(times) == 2


async def test_failures_are_counted_and_tried_again_after_a_growing_delay(
    loop: PeriodicLoop, clock: FakeClock, work: Work
) -> None:
    work.error = OSError("database is away")
    await clock.advance(10 + 1 + 2 + 4 + 4)
    assert work.times == [0, 10, 11, 13, 17, 21]
    assert state(loop) == (1, 5, 5, "OSError: database is away")
    work.error = None
    await clock.advance(14)
    assert work.times[-2:] == [25, 35]
    assert state(loop) == (3, 5, 0, None)


async def test_after_an_outage_of_any_length_it_is_tried_again_within_five_seconds(
    clock: FakeClock, work: Work
) -> None:
    loop = PeriodicLoop("reaper", work.run_once, 1, clock)
    await loop.start()
    work.error = OSError("database is away")
    for _ in range(120):
        await clock.advance(0.5)
    await loop.stop()
    pauses = [after - before for before, after in itertools.pairwise(work.times)]
    assert 4 <= max(pauses) <= 5


async def test_trouble_is_logged_once_when_it_begins_and_once_when_it_ends(
    loop: PeriodicLoop, clock: FakeClock, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    work.error = OSError("database is away")
    await clock.advance(30)
    work.error = None
    await clock.advance(30)
    events = [record.getMessage().split(" ")[0] for record in caplog.records]
    assert events == ["loop.pass_failed", "loop.recovered"]
    assert "loop=reaper" in caplog.text


async def test_it_never_ends_whatever_a_pass_raises(loop: PeriodicLoop, clock: FakeClock, work: Work) -> None:
    for error in (ValueError("a"), RecursionError("b"), MemoryError(), StopAsyncIteration(), TimeoutError("c")):
        work.error = error
        before = len(work.times)
        await clock.advance(12)
        assert len(work.times) > before


async def test_no_pass_after_the_stop(loop: PeriodicLoop, clock: FakeClock, work: Work) -> None:
    await clock.advance(1)
    await loop.stop()
    await clock.advance(60)
    assert work.times == [0]
