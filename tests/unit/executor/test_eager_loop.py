"""What a first step before the loop turns must not change: what is left to the loop, what hits it, and debug mode."""

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.thread_kill import RunKilled


@pytest.fixture
def loop() -> Iterator[HandlerLoop]:
    made = HandlerLoop("test")
    yield made
    made.close()


def run(loop: HandlerLoop, main: Coroutine[Any, Any, Any]) -> Any:
    return loop.run(main, contextvars.copy_context())


async def fine() -> str:
    return "fine"


async def its_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_what_comes_from_threads_between_runs_is_done_by_the_next(loop: HandlerLoop) -> None:
    """Of handlers that leave something to a thread and never wait, each left a callback in the loop for good."""
    done: list[str] = []

    run(loop, its_loop()).call_soon_threadsafe(done.append, "between")
    run(loop, fine())
    assert done == ["between"]


def test_a_generator_that_is_collected_between_runs_is_closed_by_the_next(loop: HandlerLoop) -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            closed.append("closed")

    async def keeps_one() -> AsyncIterator[int]:
        kept = numbers()
        await anext(kept)
        return kept

    kept = [run(loop, keeps_one())]
    run(loop, fine())
    kept.clear()
    gc.collect()
    run(loop, fine())
    assert closed == ["closed"]


def test_timers_of_first_steps_do_not_pile_up(loop: HandlerLoop) -> None:
    """A loop drops the timers that were cancelled when it turns, and only then."""
    freed: list[str] = []

    class Answer:
        def __del__(self) -> None:
            freed.append("freed")

    async def sets_a_timer_for_nothing() -> None:
        answer = Answer()
        asyncio.get_running_loop().call_later(60, id, answer).cancel()
        async with asyncio.timeout(60):
            await fine()

    timed = run(loop, timer_count())
    for _ in range(1000):
        run(loop, sets_a_timer_for_nothing())
    assert len(freed) == 1000
    assert run(loop, timer_count()) <= timed + 1


async def timer_count() -> int:
    timers: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
    return len(timers)


def test_a_timer_that_a_first_step_leaves_comes_with_a_later_run(loop: HandlerLoop) -> None:
    done: list[str] = []

    async def leaves() -> None:
        asyncio.get_running_loop().call_later(0, done.append, "timer")

    run(loop, leaves())
    run(loop, leaves())
    assert "timer" in done


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
@pytest.mark.parametrize("left", ["a callback", "a task that it waits for"])
def test_what_ends_the_loop_from_inside_ends_one_run_alone(loop: HandlerLoop, error: BaseException, left: str) -> None:
    def raises() -> None:
        raise error

    async def child() -> None:
        raises()

    async def has_it_raised() -> None:
        if left == "a callback":
            asyncio.get_running_loop().call_soon(raises)
        else:
            await asyncio.create_task(child())

    with pytest.raises(type(error)):
        run(loop, has_it_raised())
    assert run(loop, asyncio.to_thread(str, "waited")) == "waited"


def test_a_run_that_is_hit_before_its_first_step_never_takes_it(
    loop: HandlerLoop, caplog: pytest.LogCaptureFixture
) -> None:
    """It was waited for, and for ever, since its first step was not the loop's to take."""
    steps: list[str] = []

    async def steps_in() -> None:
        steps.append("in")

    def hit(_: asyncio.Task[Any]) -> None:
        raise RunKilled

    with pytest.raises(RunKilled):
        loop.run(steps_in(), contextvars.copy_context(), hit)
    assert run(loop, fine()) == "fine"
    gc.collect()
    assert steps == []
    assert "destroyed" not in caplog.text


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_loop_that_is_hit_beside_a_first_step_goes_on(
    loop: HandlerLoop, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """What is raised in a thread comes up when a call returns, be it one of those around the step."""
    mark = asyncio._set_running_loop
    inner = run(loop, its_loop())
    inner.set_debug(False)

    def hit(marked: asyncio.AbstractEventLoop | None) -> None:
        mark(marked)
        if (marked is None) is (when == "after"):
            monkeypatch.setattr(asyncio, "_set_running_loop", mark)
            raise RunKilled

    monkeypatch.setattr(asyncio, "_set_running_loop", hit)
    with pytest.raises(RunKilled):
        run(loop, fine())
    assert asyncio._get_running_loop() is None
    assert not inner.is_running()
    assert run(loop, asyncio.to_thread(str, "waited")) == "waited"


@pytest.mark.parametrize("made", [True, False])
def test_a_loop_whose_task_is_hit_while_it_is_made_can_be_closed(monkeypatch: pytest.MonkeyPatch, made: bool) -> None:
    class Hit(asyncio.Task[Any]):
        def __init__(self, *args: Any, **options: Any) -> None:
            monkeypatch.setattr(asyncio, "Task", Hit.__base__)
            if made:
                super().__init__(*args, **options)
            raise RunKilled

    loop, main = HandlerLoop("test"), fine()
    run(loop, fine())
    monkeypatch.setattr(asyncio, "Task", Hit)
    with pytest.raises(RunKilled):
        run(loop, main)
    loop.close()
    main.close()


def test_a_run_whose_loop_is_left_by_force_goes_on_with_nothing_but_its_end(loop: HandlerLoop) -> None:
    """It was given turns as one that was done, and went on with what it was killed for."""
    steps: list[str] = []

    def hit() -> None:
        raise SystemExit(3)

    async def endless() -> None:
        asyncio.get_running_loop().call_soon(hit)
        while True:
            await asyncio.wait([asyncio.create_task(fine())])
            steps.append("on")

    with pytest.raises(SystemExit):
        run(loop, endless())
    assert steps == []


def test_debug_mode_sees_the_first_step_too(loop: HandlerLoop, caplog: pytest.LogCaptureFixture) -> None:
    async def uses_its_loop_in_a_thread() -> None:
        running = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="Non-thread-safe"):
            pool.submit(lambda: running.call_soon(str)).result(5)

    async def is_slow() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.0

    run(loop, set_debug())
    run(loop, uses_its_loop_in_a_thread())
    run(loop, is_slow())
    assert "Executing <Task finished" in caplog.text


async def set_debug() -> None:
    asyncio.get_running_loop().set_debug(True)
