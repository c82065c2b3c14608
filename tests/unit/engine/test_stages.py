import asyncio
from collections.abc import Awaitable, Callable

import pytest

from jobwheel.admin.engine.stages import BatchBeforeFailedError, Stages

Step = Callable[[], Awaitable[object]]


class Way:
    """Batches on their way, and where they have come to."""

    def __init__(self) -> None:
        self.stages = Stages()
        self.told: list[str] = []

    def begin(self, name: str, *, writes: Step, routes: Step | None = None) -> "asyncio.Task[None]":
        return asyncio.create_task(self._pass(name, routes, writes))

    async def _pass(self, name: str, routes: Step | None, writes: Step) -> None:
        async with self.stages.enter() as go_on:
            self.told.append(f"{name} routes")
            if routes is not None:
                await routes()
            await go_on()
            self.told.append(f"{name} writes")
            await writes()
        self.told.append(f"{name} is over")


@pytest.fixture
def way() -> Way:
    return Way()


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)  # noqa: TID251 - turns of the loop


async def fail() -> None:
    raise OSError("in a test")


async def test_while_one_batch_is_written_one_finds_its_routes(way: Way) -> None:
    written = asyncio.Event()
    tasks = [way.begin(name, writes=written.wait) for name in "abc"]
    await turns()
    assert way.told == ["a routes", "a writes", "b routes"]
    assert way.stages.is_writing
    written.set()
    await asyncio.wait_for(asyncio.gather(*tasks), 1)
    told = [each for each in way.told if "over" not in each]
    assert told == ["a routes", "a writes", "b routes", "b writes", "c routes", "c writes"]
    assert not way.stages.is_writing


async def test_a_batch_does_not_overtake_one_that_was_not_written(way: Way) -> None:
    written = asyncio.Event()

    async def fail_later() -> None:
        await written.wait()
        await fail()

    first = way.begin("a", writes=fail_later)
    await turns()
    second = way.begin("b", writes=turns)
    await turns()
    written.set()
    ends = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 1)
    assert [type(each) for each in ends] == [OSError, BatchBeforeFailedError]
    assert way.told == ["a routes", "a writes", "b routes"]
    # And the next is as free as ever.
    await asyncio.wait_for(way.begin("a", writes=turns), 1)
    assert way.told[3:] == ["a routes", "a writes", "a is over"]


async def test_a_batch_that_finds_no_routes_holds_up_nobody(way: Way) -> None:
    first = way.begin("a", routes=fail, writes=turns)
    second = way.begin("b", writes=turns)
    ends = await asyncio.wait_for(asyncio.gather(first, second, return_exceptions=True), 1)
    assert [type(each) for each in ends] == [OSError, type(None)]
    assert way.told == ["a routes", "b routes", "b writes", "b is over"]


async def test_a_batch_that_is_cancelled_while_it_waits_leaves_its_stage(way: Way) -> None:
    written = asyncio.Event()
    first, second = (way.begin(name, writes=written.wait) for name in "ab")
    await turns()
    second.cancel()
    await turns()
    written.set()
    await asyncio.wait_for(first, 1)
    await asyncio.wait_for(way.begin("c", writes=turns), 1)
    assert way.told[-2:] == ["c writes", "c is over"]


async def test_it_is_closed_when_the_batches_under_way_have_left(way: Way) -> None:
    written = asyncio.Event()
    tasks = [way.begin(name, writes=written.wait) for name in "ab"]
    await turns()

    async def close() -> None:
        async with way.stages.closed():
            way.told.append("closed")
            await turns()
            way.told.append("open")

    closing = asyncio.create_task(close())
    await turns()
    tasks.append(way.begin("c", writes=turns))
    await turns()
    assert way.told == ["a routes", "a writes", "b routes"]
    written.set()
    await asyncio.wait_for(asyncio.gather(closing, *tasks), 1)
    assert way.told.index("b is over") < way.told.index("closed")
    assert way.told.index("open") < way.told.index("c routes")
