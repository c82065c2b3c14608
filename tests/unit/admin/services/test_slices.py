"""How much is removed at once, and how long the rest is, follow from how long a database takes."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.admin.services.slices import LEAST, MOST, PAUSE_S, SLICE, Slices
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import Database
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.store import NOW_MS, open_store


class SpentClock(FakeClock):
    """A clock that goes on by what is spent, and notes how long somebody wanted to wait."""

    def __init__(self) -> None:
        super().__init__(NOW_MS)
        self.waits: list[float] = []

    def spend(self, seconds: float) -> None:
        self._pass_until(self.monotonic() + seconds)

    async def wait(self, delay_s: float, wake: asyncio.Event | None = None) -> bool:
        self.waits.append(round(delay_s, 6))
        return await super().wait(0, wake)


@pytest.fixture
def clock() -> SpentClock:
    return SpentClock()


@pytest.fixture
async def database(tmp_path: Path, clock: SpentClock) -> AsyncIterator[Database]:
    async with open_store("sqlite", tmp_path, clock) as store:
        yield store.database


async def sizes(database: Database, clock: SpentClock, row_s: float, slices: int) -> list[int]:
    """The sizes of slices at a database that takes so long for a row."""
    asked = Slices(database)
    found = []

    def remove(_: Connection, rows: int) -> None:
        clock.spend(rows * row_s)

    for _ in range(slices):
        found.append(asked.size)
        await asked.change(asked.size, remove, asked.size)
        await asked.rest()
    return found


async def test_a_slow_database_gets_small_slices(database: Database, clock: SpentClock) -> None:
    assert await sizes(database, clock, 0.001, 4) == [SLICE, 100, LEAST, LEAST]


async def test_a_fast_one_gets_larger_ones_step_by_step(database: Database, clock: SpentClock) -> None:
    found = await sizes(database, clock, 0.000_001, 8)
    assert found[:3] == [SLICE, 300, 450]
    assert found[-2:] == [MOST, MOST]


async def test_a_slice_takes_what_others_may_wait(database: Database, clock: SpentClock) -> None:
    assert (await sizes(database, clock, 0.000_05, 5))[-1] == 300


async def test_the_rest_is_four_times_as_long_as_the_slice_and_has_a_least_length(
    database: Database, clock: SpentClock
) -> None:
    await sizes(database, clock, 0.000_2, 1)
    await sizes(database, clock, 0.000_001, 1)
    assert clock.waits == [0.16, PAUSE_S]


async def test_after_a_slice_of_which_nothing_went_nothing_waits_but_for_the_work(
    database: Database, clock: SpentClock
) -> None:
    slices = Slices(database)

    def look(_: Connection) -> str:
        clock.spend(0.002)
        return "looked"

    assert await slices.change(0, look) == "looked"
    await slices.rest()
    assert clock.waits == [0.008]
    assert slices.size == SLICE
