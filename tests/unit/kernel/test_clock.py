import asyncio
import random

import pytest

from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.fake_clock import FakeClock, settle


async def _note(clock: Clock, delay_s: float, notes: list[float], wake: asyncio.Event | None = None) -> bool:
    woken = await clock.wait(delay_s, wake)
    notes.append(clock.monotonic())
    return woken


async def test_sleepers_wake_in_order_and_each_sees_the_time_it_asked_for() -> None:
    clock, notes = FakeClock(), list[float]()
    start = clock.monotonic()
    tasks = [asyncio.create_task(_note(clock, delay, notes)) for delay in (0.3, 0.1, 0.2)]
    await clock.advance(1)
    assert notes == [start + 0.1, start + 0.2, start + 0.3]
    assert [await task for task in tasks] == [False, False, False]
    assert clock.monotonic() == start + 1


async def test_a_sleeper_that_sleeps_again_is_woken_again_in_the_same_advance() -> None:
    clock, notes = FakeClock(), list[float]()
    start = clock.monotonic()

    async def twice() -> None:
        await _note(clock, 1, notes)
        await _note(clock, 1, notes)

    task = asyncio.create_task(twice())
    await clock.advance(2)
    assert notes == [start + 1, start + 2]
    await task


async def test_whoever_began_to_wait_first_wakes_first() -> None:
    clock, order = FakeClock(), list[int]()

    async def note(number: int) -> None:
        await clock.wait(1)
        order.append(number)

    tasks = [asyncio.create_task(note(number)) for number in range(5)]
    await clock.advance(1)
    assert order == [0, 1, 2, 3, 4]
    await asyncio.gather(*tasks)


async def test_no_sleeper_wakes_a_rounding_error_too_early() -> None:
    clock, chance = FakeClock(), random.Random(7)

    async def sleep_often() -> None:
        for _ in range(300):
            delay_s = chance.random() / 3
            due_s = clock.monotonic() + delay_s
            await clock.wait(delay_s)
            assert clock.monotonic() == due_s

    task = asyncio.create_task(sleep_often())
    await clock.advance(100)
    await task


async def test_nobody_wakes_before_the_time() -> None:
    clock, notes = FakeClock(), list[float]()
    task = asyncio.create_task(_note(clock, 1, notes))
    await clock.advance(0.999)
    assert notes == []
    assert clock.waiting == 1
    await clock.advance(0.001)
    assert len(notes) == 1
    assert clock.waiting == 0
    await task


@pytest.mark.parametrize("step_s", [0.05, 0.0007, 0.1, 0.333])
async def test_the_wall_clock_does_not_lose_milliseconds_to_rounding(step_s: float) -> None:
    clock = FakeClock(1_700_000_000_000)
    for _ in range(100):
        await clock.advance(step_s)
    assert clock.now() == 1_700_000_000_000 + round(step_s * 100_000)


async def test_advance_moves_all_three_clocks() -> None:
    clock = FakeClock(1_700_000_000_000)
    before = (clock.monotonic(), clock.boot_time())
    await clock.advance(2.5)
    assert clock.now() == 1_700_000_002_500
    assert (clock.monotonic(), clock.boot_time()) == (before[0] + 2.5, before[1] + 2.5)


async def test_step_moves_the_wall_clock_alone_and_wakes_nobody() -> None:
    clock, notes = FakeClock(1_700_000_000_000), list[float]()
    before = (clock.monotonic(), clock.boot_time())
    task = asyncio.create_task(_note(clock, 1, notes))
    await settle()
    clock.step(3600)
    assert clock.now() == 1_700_003_600_000
    clock.step(-7200)
    await settle()
    assert clock.now() == 1_699_996_400_000
    assert (clock.monotonic(), clock.boot_time()) == before
    assert notes == []
    await clock.advance(1)
    await task


def test_suspend_moves_wall_and_boot_time_but_not_monotonic() -> None:
    clock = FakeClock(1_700_000_000_000)
    monotonic, boot = clock.monotonic(), clock.boot_time()
    clock.suspend(60)
    assert clock.now() == 1_700_000_060_000
    assert clock.monotonic() == monotonic
    assert clock.boot_time() == boot + 60


async def test_an_event_ends_a_wait_early_and_stays_set() -> None:
    clock, notes, wake = FakeClock(), list[float](), asyncio.Event()
    task = asyncio.create_task(_note(clock, 60, notes, wake))
    await clock.advance(1)
    wake.set()
    assert await task is True
    assert wake.is_set()
    assert notes == [clock.monotonic()]
    assert clock.waiting == 0


async def test_an_event_that_is_not_set_lets_the_wait_time_out() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.wait(1, asyncio.Event()))
    await clock.advance(1)
    assert await task is False


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.wait(1, asyncio.Event()))
    await settle()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert clock.waiting == 0
    await clock.advance(2)


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()], ids=["fake", "system"])
async def test_no_delay_gives_others_a_turn(clock: Clock) -> None:
    seen: list[str] = []

    async def other() -> None:
        seen.append("other")

    task = asyncio.create_task(other())
    assert await clock.wait(0) is False
    assert seen == ["other"]
    assert await clock.wait(-1, asyncio.Event()) is False
    await task


@pytest.mark.parametrize("clock", [FakeClock(), SystemClock()], ids=["fake", "system"])
async def test_an_event_that_is_set_already_ends_the_wait_at_once(clock: Clock) -> None:
    wake = asyncio.Event()
    wake.set()
    assert await clock.wait(3600, wake) is True
    assert await clock.wait(0, wake) is True


async def test_the_system_clock_waits_about_as_long_as_asked() -> None:
    clock = SystemClock()
    start = clock.monotonic()
    assert await clock.wait(0.02) is False
    assert await clock.wait(0.02, asyncio.Event()) is False
    assert 0.035 <= clock.monotonic() - start < 5


async def test_the_system_clock_is_woken_by_an_event() -> None:
    wake = asyncio.Event()
    asyncio.get_running_loop().call_soon(wake.set)
    assert await SystemClock().wait(3600, wake) is True


def test_the_system_clocks_go_forwards() -> None:
    clock = SystemClock()
    assert clock.now() > 1_700_000_000_000
    assert clock.monotonic() <= clock.monotonic()
    assert clock.boot_time() <= clock.boot_time()
