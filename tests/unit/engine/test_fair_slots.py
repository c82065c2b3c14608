import asyncio
import random
from collections import Counter

import pytest

from jobwheel.admin.engine.fair_slots import FairSlots


async def turn() -> None:
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop


async def hog(slots: FairSlots[str], user: str, count: int) -> list[asyncio.Task[None]]:
    """So many tasks of a user that take a slot and never give it back."""
    tasks = [asyncio.create_task(slots.acquire(user)) for _ in range(count)]
    await turn()
    return tasks


def got(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() for task in tasks)


async def cancel(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(("limit", "most"), [(1, 1), (2, 2), (4, 4), (5, 4), (100, 80), (200, 160)])
async def test_one_user_gets_four_fifths_at_most(limit: int, most: int) -> None:
    slots = FairSlots[str](limit)
    tasks = await hog(slots, "a", limit + 1)
    assert (got(tasks), slots.in_use) == (most, most)
    await cancel(*tasks)


async def test_beside_some_that_take_all_they_can_get_somebody_new_finds_a_slot() -> None:
    slots = FairSlots[str](200)
    tasks = [task for user in "abc" for task in await hog(slots, user, 300)]
    await asyncio.wait_for(slots.acquire("new"), 1)
    await cancel(*tasks)


async def test_what_becomes_free_goes_round_and_each_users_own_turns_keep_their_order() -> None:
    slots = FairSlots[str](1)
    await slots.acquire("x")
    order: list[str] = []

    async def use(user: str, number: int) -> None:
        await slots.acquire(user)
        order.append(f"{user}{number}")
        slots.release(user)

    async with asyncio.TaskGroup() as group:
        for user, number in (("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1), ("c", 2)):
            group.create_task(use(user, number))
        await turn()
        slots.release("x")
    assert order == ["a1", "b1", "c1", "a2", "c2", "a3"]
    assert slots.in_use == 0


async def test_who_stops_waiting_keeps_no_slot_and_holds_nobody_up() -> None:
    slots = FairSlots[str](1)
    await slots.acquire("x")
    first, second, third = [asyncio.create_task(slots.acquire(user)) for user in "aab"]
    await turn()
    first.cancel()
    await turn()
    slots.release("x")
    # The turn has come to it, and it goes away before it hears of it.
    second.cancel()
    await asyncio.wait_for(third, 1)
    assert slots.in_use == 1
    slots.release("b")
    assert (slots.in_use, dict(slots._held), dict(slots._waiting)) == (0, {}, {})


@pytest.mark.parametrize("seed", range(10))
async def test_never_more_than_the_limit_and_nobody_is_forgotten(seed: int) -> None:
    source = random.Random(seed)
    slots, done = FairSlots[str](source.randint(1, 9)), Counter[str]()

    async def use(user: str) -> None:
        await slots.acquire(user)
        try:
            assert slots.in_use <= slots._limit
            for _ in range(source.randint(0, 3)):
                await turn()
        finally:
            slots.release(user)
        done[user] += 1

    users = [source.choice("abcd") for _ in range(200)]
    tasks = [asyncio.create_task(use(user)) for user in users]
    for task in source.sample(tasks, 20):
        await turn()
        task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 5)
    assert sum(done.values()) >= 180
    assert (slots.in_use, dict(slots._waiting)) == (0, {})
