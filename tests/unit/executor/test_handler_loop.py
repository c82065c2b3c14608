import asyncio
import contextvars
import gc
import os
import sys
from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any

import pytest

from jobwheel.executor.handler_loop import HandlerLoop


@pytest.fixture
def loop() -> Iterator[HandlerLoop]:
    made = HandlerLoop("test")
    yield made
    made.close()


def run(loop: HandlerLoop, main: Coroutine[Any, Any, Any]) -> Any:
    return loop.run(main, contextvars.copy_context())


async def fine() -> str:
    return "fine"


def test_a_loop_is_used_again_and_knows_its_task(loop: HandlerLoop) -> None:
    async def timed() -> asyncio.AbstractEventLoop:
        # Needs the current task, already before the first wait.
        async with asyncio.timeout(5):
            await asyncio.get_running_loop().run_in_executor(None, str)
        return asyncio.get_running_loop()

    assert run(loop, timed()) is run(loop, timed())
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()


def test_what_came_before_a_run_began_is_seen_by_it(loop: HandlerLoop) -> None:
    """The first step of a run does not ask the system; the second must."""
    theirs, ours = os.pipe()

    async def reads() -> bytes:
        there = asyncio.Event()
        asyncio.get_running_loop().add_reader(theirs, there.set)
        async with asyncio.timeout(5):
            await there.wait()
        asyncio.get_running_loop().remove_reader(theirs)
        return os.read(theirs, 9)

    os.write(ours, b"before")
    assert run(loop, fine()) == "fine"
    assert run(loop, reads()) == b"before"
    os.close(theirs)
    os.close(ours)


def test_a_first_step_is_inside_a_loop_that_runs(loop: HandlerLoop) -> None:
    async def looks() -> tuple[bool, asyncio.Task[Any] | None]:
        never = asyncio.get_running_loop().create_future()
        with pytest.raises(RuntimeError, match="already running"):
            asyncio.get_running_loop().run_until_complete(never)
        return asyncio.get_running_loop().is_running(), asyncio.current_task()

    is_running, task = run(loop, looks())
    assert is_running
    assert task is not None
    assert not task.get_loop().is_running()


def test_what_a_first_step_leaves_to_the_loop_is_done(loop: HandlerLoop, caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    async def notes() -> None:
        done.append("a task")

    async def leaves() -> None:
        asyncio.get_running_loop().call_soon(done.append, "soon")
        asyncio.get_running_loop().call_soon_threadsafe(done.append, "from a thread")
        done.append(repr(asyncio.create_task(notes()).done()))

    run(loop, leaves())
    assert done == ["False", "soon", "from a thread", "a task"]
    assert not caplog.text


def test_a_generator_that_a_first_step_drops_is_closed(loop: HandlerLoop, caplog: pytest.LogCaptureFixture) -> None:
    closed: list[str] = []

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(9):
                yield number
        finally:
            closed.append("closed")

    async def takes_one() -> int | None:
        async for number in numbers():
            return number
        return None

    assert run(loop, takes_one()) == 0
    gc.collect()
    run(loop, fine())
    assert closed == ["closed"]
    assert not caplog.text


def test_generators_are_watched_in_the_loops_thread_until_it_is_closed() -> None:
    made = HandlerLoop("test")
    run(made, fine())
    assert sys.get_asyncgen_hooks().firstiter is not None
    made.close()
    assert sys.get_asyncgen_hooks() == (None, None)


def test_a_run_that_stops_its_loop_and_returns_at_once_is_done(loop: HandlerLoop) -> None:
    async def stops() -> str:
        asyncio.get_running_loop().stop()
        return "done"

    async def waits() -> str:
        await asyncio.get_running_loop().run_in_executor(None, str)
        return "waited"

    assert run(loop, stops()) == "done"
    assert run(loop, waits()) == "waited"


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_whatever_a_run_raises_is_raised_once_and_the_next_runs(
    loop: HandlerLoop, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    async def raises() -> None:
        raise error

    with pytest.raises(type(error)):
        run(loop, raises())
    gc.collect()
    assert "never retrieved" not in caplog.text
    assert run(loop, fine()) == "fine"


def test_a_run_that_stops_its_loop_has_failed_and_is_cancelled(
    loop: HandlerLoop, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[str] = []

    async def stops() -> None:
        asyncio.get_running_loop().stop()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")

    with pytest.raises(RuntimeError, match="stopped its event loop"):
        run(loop, stops())
    assert ended == ["cancelled"]
    assert "job.tasks_left_behind" in caplog.text
    assert run(loop, fine()) == "fine"
