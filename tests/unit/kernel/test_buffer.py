import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest

from jobwheel.kernel.buffer import BatchingBuffer, BufferLimits
from jobwheel.kernel.fake_clock import FakeClock, settle
from tests.support.batch_sink import OutageError, Sink

Make = Callable[[BufferLimits], BatchingBuffer[int]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
async def make(clock: FakeClock, sink: Sink) -> AsyncIterator[Make]:
    made: list[BatchingBuffer[int]] = []

    def make(limits: BufferLimits) -> BatchingBuffer[int]:
        buffer = BatchingBuffer(
            "results", sink.flush, sink.reject, clock, limits, lambda error: isinstance(error, OutageError)
        )
        made.append(buffer)
        return buffer

    yield make
    sink.outage = False
    sink.gate = None
    for buffer in made:
        await buffer.stop()


async def test_a_full_batch_goes_at_once(make: Make, sink: Sink) -> None:
    buffer = make(BufferLimits(most_items=3, most_wait_s=60))
    await buffer.start()
    for item in range(7):
        buffer.add(item)
    await settle()
    assert sink.batches == [[0, 1, 2], [3, 4, 5]]
    assert len(buffer) == 1


async def test_the_rest_goes_when_the_oldest_has_waited_long_enough(make: Make, sink: Sink, clock: FakeClock) -> None:
    buffer = make(BufferLimits(most_items=3, most_wait_s=2))
    await buffer.start()
    buffer.add(1)
    await clock.advance(1)
    buffer.add(2)
    await clock.advance(0.9)
    assert sink.batches == []
    await clock.advance(0.1)
    assert sink.batches == [[1, 2]]


async def test_without_a_wait_what_is_put_in_together_goes_together(make: Make, sink: Sink) -> None:
    buffer = make(BufferLimits(most_items=100))
    await buffer.start()
    for item in range(5):
        buffer.add(item)
    await buffer.drained()
    assert sink.batches == [[0, 1, 2, 3, 4]]


async def test_drained_waits_for_the_flush_to_end(make: Make, sink: Sink) -> None:
    buffer = make(BufferLimits())
    await buffer.start()
    await buffer.drained()
    sink.gate = asyncio.Event()
    buffer.add(1)
    drained = asyncio.create_task(buffer.drained())
    await settle()
    assert sink.tries == [[1]]
    assert not drained.done()
    sink.gate.set()
    await drained
    assert sink.flushed == [1]


async def test_items_put_in_before_the_start_are_flushed_after_it(make: Make, sink: Sink) -> None:
    buffer = make(BufferLimits())
    buffer.add(1)
    await settle()
    assert sink.tries == []
    await buffer.start()
    await buffer.drained()
    assert sink.flushed == [1]


async def test_stop_flushes_what_waits_in_batches_without_waiting(make: Make, sink: Sink, clock: FakeClock) -> None:
    buffer = make(BufferLimits(most_items=4, most_wait_s=3600))
    await buffer.start()
    for item in range(3):
        buffer.add(item)
    await settle()
    sink.gate = asyncio.Event()
    buffer.add(3)
    await settle()
    for item in range(4, 10):
        buffer.add(item)
    stop = asyncio.create_task(buffer.stop())
    await settle()
    assert not stop.done()
    sink.gate.set()
    await stop
    assert sink.batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert sink.rejected == []


async def test_a_batch_that_fails_is_tried_again_whole(make: Make, sink: Sink, clock: FakeClock) -> None:
    buffer = make(BufferLimits(whole_tries=3))
    await buffer.start()
    sink.failures_to_come = 2
    buffer.add(1)
    buffer.add(2)
    await clock.advance(5)
    assert sink.tries == [[1, 2]] * 3
    assert sink.batches == [[1, 2]]
    assert sink.rejected == []


async def test_one_bad_item_costs_only_itself_and_the_order_stays(make: Make, sink: Sink, clock: FakeClock) -> None:
    buffer = make(BufferLimits(whole_tries=2))
    await buffer.start()
    sink.bad = {2}
    for item in range(5):
        buffer.add(item)
    await clock.advance(5)
    assert sink.tries == [[0, 1, 2, 3, 4]] * 2 + [[0], [1], [2], [3], [4]]
    assert sink.flushed == [0, 1, 3, 4]
    assert sink.rejected == [(2, "2 is bad")]


async def test_an_outage_rejects_nothing_however_long_it_lasts(make: Make, sink: Sink, clock: FakeClock) -> None:
    buffer = make(BufferLimits(most_items=2, whole_tries=2))
    await buffer.start()
    sink.outage = True
    for item in range(5):
        buffer.add(item)
    await clock.advance(3600)
    assert len(sink.tries) > 100
    assert sink.rejected == []
    sink.outage = False
    await clock.advance(10)
    assert sink.flushed == [0, 1, 2, 3, 4]


async def test_an_outage_that_begins_among_single_items_rejects_none_of_them(
    make: Make, sink: Sink, clock: FakeClock
) -> None:
    buffer = make(BufferLimits(whole_tries=1))
    await buffer.start()
    sink.bad = {0}
    sink.gate = asyncio.Event()
    buffer.add(0)
    buffer.add(1)
    buffer.add(2)
    await settle()
    sink.gate.set()
    sink.outage = True
    await clock.advance(60)
    sink.outage = False
    await clock.advance(10)
    assert sink.flushed == [1, 2]
    assert sink.rejected == [(0, "0 is bad")]


async def test_failures_during_an_outage_do_not_use_up_the_tries_of_the_batch(
    make: Make, sink: Sink, clock: FakeClock
) -> None:
    buffer = make(BufferLimits(whole_tries=3))
    await buffer.start()
    sink.outage = True
    buffer.add(1)
    buffer.add(2)
    await clock.advance(60)
    sink.outage = False
    sink.failures_to_come = 2
    await clock.advance(20)
    assert sink.batches == [[1, 2]]


async def test_a_stop_during_an_outage_gives_up_after_its_time_and_rejects_in_order(
    make: Make, sink: Sink, clock: FakeClock
) -> None:
    buffer = make(BufferLimits(most_items=2, drain_s=10))
    await buffer.start()
    sink.outage = True
    for item in range(5):
        buffer.add(item)
    await settle()
    stop = asyncio.create_task(buffer.stop())
    await clock.advance(9.9)
    assert not stop.done()
    assert sink.rejected == []
    await clock.advance(0.2)
    await stop
    assert [item for item, _ in sink.rejected] == [0, 1, 2, 3, 4]
    assert "results could not be drained" in sink.rejected[0][1]
    await buffer.drained()


async def test_giving_up_among_single_items_rejects_only_those_not_flushed_yet(
    make: Make, sink: Sink, clock: FakeClock
) -> None:
    buffer = make(BufferLimits(whole_tries=1, drain_s=1))
    await buffer.start()
    sink.bad = {1}
    for item in range(4):
        buffer.add(item)

    original = sink.flush

    async def flush_and_hang_at_two(items: Sequence[int]) -> None:
        if list(items) == [2]:
            await asyncio.Event().wait()
        await original(items)

    buffer._flush = flush_and_hang_at_two
    await settle()
    stop = asyncio.create_task(buffer.stop())
    await clock.advance(2)
    await stop
    assert sink.flushed == [0]
    assert [item for item, _ in sink.rejected] == [1, 2, 3]


async def test_a_reject_that_fails_loses_none_of_the_others(
    make: Make, sink: Sink, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    buffer = make(BufferLimits(whole_tries=1))

    def reject(item: int, error: Exception) -> None:
        raise OSError("no space for the dead letter")

    buffer._reject = reject
    sink.bad = {1}
    for item in range(4):
        buffer.add(item)
    await buffer.start()
    await clock.advance(5)
    assert sink.flushed == [0, 2, 3]
    assert buffer.crashes == {"flush": 1}


async def test_what_was_flushed_stays_as_it_was(make: Make) -> None:
    buffer = make(BufferLimits())
    kept: list[Sequence[int]] = []

    async def keep(items: Sequence[int]) -> None:
        kept.append(items)

    buffer._flush = keep
    buffer.add(1)
    await buffer.start()
    await buffer.drained()
    assert [list(items) for items in kept] == [[1]]


async def test_it_works_again_after_a_stop(make: Make, sink: Sink) -> None:
    buffer = make(BufferLimits(most_items=2, most_wait_s=60))
    for start in (0, 3, 6):
        await buffer.start()
        for item in range(start, start + 3):
            buffer.add(item)
        await settle()
        assert sink.batches[-1] == [start, start + 1]
        await buffer.stop()
        assert sink.batches[-1] == [start + 2]
