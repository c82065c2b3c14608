import asyncio

import pytest

from jobwheel.admin.domain.ids import GroupId, JobId
from jobwheel.admin.engine.lanes import MOST_IN_TAKE_OFF, Lane, SlowJobs
from tests.support.engine_parts import pending_run


def ids(runs: list) -> list[int]:  # type: ignore[type-arg]
    return [run.id for run in runs]


def test_a_lane_gives_out_what_waits_in_order() -> None:
    lane = Lane("fast", 3)
    lane.put([pending_run(n) for n in range(5)])
    assert ids(lane.take(3)) == [0, 1, 2]
    assert len(lane) == 2
    assert ids(lane.take(9)) == [3, 4]
    assert lane.take(9) == []


def test_runs_that_had_their_turn_are_next_again() -> None:
    lane = Lane("fast", 9)
    lane.put([pending_run(1)])
    lane.put_first([pending_run(2), pending_run(3)])
    assert ids(lane.take(9)) == [2, 3, 1]


def test_runs_that_are_called_are_next_in_the_order_in_which_they_were_called() -> None:
    lane = Lane("fast", 9)
    lane.put([pending_run(7), pending_run(8)])
    lane.call([pending_run(1), pending_run(2)])
    lane.call([pending_run(3)])
    lane.call([])
    assert len(lane) == 5
    taken = lane.take(2)
    assert ids(taken) == [1, 2]
    lane.put_first(taken)
    assert ids(lane.take(9)) == [1, 2, 3, 7, 8]
    lane.call([pending_run(4)])
    lane.clear()
    assert (len(lane), lane.take(9)) == (0, [])


def test_runs_that_were_held_back_come_in_order_and_leave_room_to_others() -> None:
    lane = Lane("fast", 9)
    lane.hold_back([pending_run(100 + n) for n in range(30)])
    lane.put([pending_run(n) for n in range(30)])
    lane.call([pending_run(50), pending_run(51)])
    assert len(lane) == 62
    assert ids(lane.take(20)) == [50, 51, 100, 101, *range(16)]
    assert ids(lane.take(20)) == [102, 103, *range(16, 30)]
    assert ids(lane.take(20)) == [104, 105]
    lane.clear()
    assert (len(lane), lane.take(20)) == (0, [])


async def test_a_lane_is_ready_while_a_run_waits() -> None:
    lane = Lane("fast", 1)
    waiting = asyncio.create_task(lane.ready())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    lane.put([])
    assert not waiting.done()
    lane.put([pending_run(1), pending_run(2)])
    await asyncio.wait_for(waiting, 1)
    lane.take(1)
    await asyncio.wait_for(lane.ready(), 1)
    lane.take(1)
    waiting = asyncio.create_task(lane.ready())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert not waiting.done()
    lane.clear()
    lane.put_first([pending_run(1)])
    await asyncio.wait_for(waiting, 1)


async def test_a_lane_is_crowded_while_half_a_take_off_waits() -> None:
    lane = Lane("fast", 1)
    half = MOST_IN_TAKE_OFF // 2
    waiting = asyncio.create_task(lane.crowded())
    lane.put([pending_run(n) for n in range(half - 1)])
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert not waiting.done()
    lane.hold_back([pending_run(half)])
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(lane.crowded(), 1)
    lane.take(1)
    waiting = asyncio.create_task(lane.crowded())
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert not waiting.done()
    lane.call([pending_run(1)])
    await asyncio.wait_for(waiting, 1)


async def test_no_more_requests_than_the_limit_have_a_slot() -> None:
    lane = Lane("fast", 2)
    for group_id in (1, 2):
        await lane.enter(GroupId(group_id))
    third = asyncio.create_task(lane.enter(GroupId(3)))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    assert (lane.in_use, third.done()) == (2, False)
    lane.leave(GroupId(1))
    await asyncio.wait_for(third, 1)
    assert lane.in_use == 2


def test_clearing_a_lane_forgets_what_waits() -> None:
    lane = Lane("fast", 1)
    lane.put([pending_run(1), pending_run(2)])
    lane.clear()
    assert (len(lane), lane.take(9)) == (0, [])


MINUTE_MS = 29_929_110 * 60_000
JOB = JobId(7)


@pytest.mark.parametrize(("sends", "took_s", "slow"), [(10, 0.6, False), (11, 0.6, True), (99, 0.5, False)])
def test_more_than_so_many_slow_sends_make_a_job_slow(sends: int, took_s: float, slow: bool) -> None:
    jobs = SlowJobs(0.5, 10)
    for _ in range(sends):
        jobs.note(JOB, took_s, MINUTE_MS)
    assert jobs.is_slow(JOB, MINUTE_MS + 59_999) is slow
    assert not jobs.is_slow(JobId(8), MINUTE_MS)


def test_where_no_send_may_be_slow_the_first_one_makes_its_job_slow() -> None:
    jobs = SlowJobs(0.05, 0)
    assert not jobs.is_slow(JOB, MINUTE_MS)
    jobs.note(JOB, 0.06, MINUTE_MS)
    assert jobs.is_slow(JOB, MINUTE_MS)


@pytest.mark.parametrize("later_ms", [60_000, -1, -3_600_000])
def test_the_next_minute_starts_anew_whichever_way_the_clock_went(later_ms: int) -> None:
    jobs = SlowJobs(0.5, 10)
    for _ in range(11):
        jobs.note(JOB, 1.0, MINUTE_MS)
    assert not jobs.is_slow(JOB, MINUTE_MS + later_ms)
    for _ in range(10):
        jobs.note(JOB, 1.0, MINUTE_MS + later_ms)
    assert not jobs.is_slow(JOB, MINUTE_MS + later_ms)


def test_only_what_was_slow_this_minute_is_remembered() -> None:
    jobs = SlowJobs(0.5, 10)
    for n in range(1000):
        jobs.note(JobId(n), 0.1, MINUTE_MS)
        jobs.is_slow(JobId(n), MINUTE_MS)
    assert not jobs._slow_sends
