"""Many executors beat at several nodes of a server at once, as those of a large installation do after an outage."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

import pytest
from sqlalchemy import select

from jobwheel.admin.engine.addresses import AddressBook
from jobwheel.admin.services.registry import Registry
from jobwheel.admin.store import registry
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.tables import job_group
from jobwheel.wire.messages import RegistryRequest
from tests.support.store import Store

NODES = 3
EXECUTORS = 200
LEAVING = 40

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def store(server_store: Store) -> Store:
    return server_store


@pytest.fixture
async def registries(server_url: str, store: Store) -> AsyncIterator[list[Registry]]:
    """What takes the beats, of each node."""
    async with contextlib.AsyncExitStack() as stack:
        opened = []
        for _ in range(NODES):
            database = open_database(server_url, store.clock)
            await database.start()
            stack.push_async_callback(database.stop)
            book = AddressBook(database)
            opened.append(Registry(database, store.clock, store.zone, book, auto_create_groups=True))
        yield opened


def request(number: int) -> RegistryRequest:
    return RegistryRequest(
        registry_group="EXECUTOR", registry_key="orders", registry_value=f"http://10.0.0.{number:03}:9999/"
    )


async def listed(store: Store) -> list[str]:
    """The group's stored list."""
    lists = await store.database.read(lambda c: c.execute(select(job_group.c.address_list)).scalars().all())
    assert len(lists) == 1
    return sorted((lists[0] or "").split(","))


def addresses(numbers: Iterable[int]) -> list[str]:
    return sorted(request(number).registry_value for number in numbers)


async def test_two_hundred_that_beat_at_three_nodes_at_once_are_all_listed(
    store: Store, registries: list[Registry]
) -> None:
    # Each node hears them in an order of its own.
    beats = [
        each.register(request((number * 7 + 61 * n) % EXECUTORS))
        for n, each in enumerate(registries)
        for number in range(EXECUTORS)
    ]
    await asyncio.gather(*beats)
    assert await listed(store) == addresses(range(EXECUTORS))
    live = await store.database.read(registry.load_addresses, store.database.now_ms())
    assert sorted(each.address for each in live[0].registrations) == addresses(range(EXECUTORS))
    leaving = [registries[number % NODES].remove(request(number)) for number in range(LEAVING)]
    staying = [registries[number % NODES].register(request(number)) for number in range(LEAVING, EXECUTORS)]
    await asyncio.gather(*leaving, *staying)
    assert await listed(store) == addresses(range(LEAVING, EXECUTORS))
