import asyncio
from collections import Counter

import pytest

from jobwheel.admin.domain.ids import JobId
from jobwheel.admin.engine.lanes import AddressSlots, Lane, SlowJobs
from tests.support.engine_parts import pending_run

DEAD = "http://10.0.0.66:9999/"
LIVE = "http://10.0.0.7:9999/"


def ids(runs: list) -> list[int]:  # type: ignore[type-arg]
    return [run.id for run in runs]


def test_a_lane_gives_out_as_many_as_it_has_slots_in_order() -> None:
    lane = Lane("fast", 3)
    lane.put([pending_run(n) for n in range(5)])
    assert ids(lane.take()) == [0, 1, 2]
    assert (lane.in_use, len(lane), lane.take()) == (3, 2, [])
    lane.release(2)
    assert ids(lane.take()) == [3, 4]


def test_runs_that_had_their_turn_are_next_again() -> None:
    lane = Lane("fast", 9)
    lane.put([pending_run(1)])
    lane.put_first([pending_run(2), pending_run(3)])
    assert ids(lane.take()) == [2, 3, 1]


async def test_a_lane_is_ready_with_a_run_and_a_slot() -> None:
    lane = Lane("fast", 1)
    waiting = asyncio.create_task(lane.ready())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert not waiting.done()
    lane.put([pending_run(1), pending_run(2)])
    await asyncio.wait_for(waiting, 1)
    lane.take()
    waiting = asyncio.create_task(lane.ready())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert not waiting.done()
    lane.release()
    await asyncio.wait_for(waiting, 1)


def test_clearing_a_lane_leaves_its_slots() -> None:
    lane = Lane("fast", 1)
    lane.put([pending_run(1), pending_run(2)])
    lane.take()
    assert ids(lane.clear()) == [2]
    assert (len(lane), lane.in_use) == (0, 1)


def take_all(slots: AddressSlots, address: str, count: int) -> list[int]:
    """Try to take a slot for runs 0 to count - 1; the ones that got one."""
    return [n for n in range(count) if slots.take(address, pending_run(n))]


def test_a_run_beyond_the_limit_is_parked_and_each_landing_calls_one() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 20)
    assert flying == list(range(len(flying)))
    assert slots.parked == 20 - len(flying)
    first = len(flying)
    assert ids(slots.give_back(DEAD)) == [first]
    assert ids(slots.give_back(DEAD)) == [first + 1]
    assert slots.parked == 20 - len(flying) - 2


def test_when_nothing_is_under_way_any_more_all_parked_runs_have_their_turn() -> None:
    slots = AddressSlots(1, 1000)
    flying = take_all(slots, DEAD, 10)
    called = [run_id for _ in flying for run_id in ids(slots.give_back(DEAD))]
    assert called == list(range(len(flying), 10))
    assert slots.parked == 0


def test_one_dead_address_takes_no_slot_of_another() -> None:
    slots = AddressSlots(2, 1000)
    take_all(slots, DEAD, 100)
    assert take_all(slots, LIVE, 2) == [0, 1]
    assert slots.give_back(LIVE) == []
    assert slots.give_back(LIVE) == []


def test_parked_runs_are_bounded_and_an_address_without_them_has_its_share() -> None:
    slots = AddressSlots(2, 10)
    held = take_all(slots, DEAD, 6)
    assert len(held) == 6
    parked = 0
    while slots.has_place(DEAD):
        assert not slots.take(DEAD, pending_run(100 + parked))
        parked += 1
    assert (parked, slots.parked) == (10, 10)
    assert not slots.is_relieved(DEAD)
    assert slots.has_place(LIVE)
    for n in range(8):
        assert slots.has_place(LIVE)
        slots.take(LIVE, pending_run(n))
    assert not slots.has_place(LIVE)
    while not slots.is_relieved(DEAD):
        slots.give_back(DEAD)
    assert slots.parked <= 10 // 2 or slots.has_place(DEAD)


async def test_no_more_than_the_limit_are_on_the_wire() -> None:
    slots = AddressSlots(2, 1000)
    for n in range(5):
        slots.take(DEAD, pending_run(n))
    wire = slots.wire(DEAD)
    await wire.acquire()
    await wire.acquire()
    assert wire.locked()
    assert slots.wire(DEAD) is wire
    assert not slots.wire(LIVE).locked()


def test_nothing_is_remembered_of_an_address_without_sends() -> None:
    slots = AddressSlots(1, 1000)
    for _ in range(3):
        flying = take_all(slots, DEAD, 5)
        slots.wire(DEAD)
        for _ in flying:
            slots.give_back(DEAD)
    assert (slots._in_use, slots._parked, slots._wires) == (Counter(), {}, {})


MINUTE_MS = 29_929_110 * 60_000
JOB = JobId(7)


@pytest.mark.parametrize(("sends", "took_s", "slow"), [(10, 0.6, False), (11, 0.6, True), (99, 0.5, False)])
def test_more_than_ten_sends_over_half_a_second_make_a_job_slow(sends: int, took_s: float, slow: bool) -> None:
    jobs = SlowJobs()
    for _ in range(sends):
        jobs.note(JOB, took_s, MINUTE_MS)
    assert jobs.is_slow(JOB, MINUTE_MS + 59_999) is slow
    assert not jobs.is_slow(JobId(8), MINUTE_MS)


@pytest.mark.parametrize("later_ms", [60_000, -1, -3_600_000])
def test_the_next_minute_starts_anew_whichever_way_the_clock_went(later_ms: int) -> None:
    jobs = SlowJobs()
    for _ in range(11):
        jobs.note(JOB, 1.0, MINUTE_MS)
    assert not jobs.is_slow(JOB, MINUTE_MS + later_ms)
    for _ in range(10):
        jobs.note(JOB, 1.0, MINUTE_MS + later_ms)
    assert not jobs.is_slow(JOB, MINUTE_MS + later_ms)


def test_only_what_was_slow_this_minute_is_remembered() -> None:
    jobs = SlowJobs()
    for n in range(1000):
        jobs.note(JobId(n), 0.1, MINUTE_MS)
        jobs.is_slow(JobId(n), MINUTE_MS)
    assert not jobs._slow_sends
