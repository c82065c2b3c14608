import asyncio
import threading
from typing import Any

import pytest

from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.engine.addresses import AddressBook, Candidate
from jobwheel.admin.services.registry import Registry
from jobwheel.admin.store import Connection, registry
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.messages import Features, RegistryRequest
from tests.support.live_admin import until
from tests.support.store import Store

A, B = "http://a:9999/", "http://b:9999/"


def request_of(
    address: str, app_name: str = "orders", instance: str | None = None, *, batch: bool = False
) -> RegistryRequest:
    features = Features(instance=instance, batch=batch) if instance else None
    return RegistryRequest(registry_group="EXECUTOR", registry_key=app_name, registry_value=address, features=features)


def services(store: Store) -> tuple[AddressBook, Registry]:
    book = AddressBook(store.database)
    return book, Registry(store.database, store.clock, store.zone, book, auto_create_groups=False)


def addresses(book: AddressBook, group_id: GroupId) -> list[str]:
    return [each.address for each in book.candidates(group_id)]


async def test_live_addresses_are_sorted_and_each_group_has_its_own(store: Store) -> None:
    book, made = services(store)
    group_id, other_id = await store.group(), await store.group("billing")
    for address in (B, A):
        await made.register(request_of(address, instance="i-1" if address == A else None))
    await made.register(request_of("http://c:1", "billing"))
    assert [(each.address, each.instance_id) for each in book.candidates(group_id)] == [(A, "i-1"), (B, None)]
    assert addresses(book, other_id) == ["http://c:1"]
    assert addresses(book, GroupId(4711)) == []
    assert (book.app_name(group_id), book.app_name(GroupId(4711))) == ("orders", None)


async def test_which_addresses_take_batches(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A, instance="i-1", batch=True))
    await made.register(request_of(B, instance="i-2"))
    expected = [Candidate(A, "i-1", batch=True), Candidate(B, "i-2", batch=False)]
    assert list(book.candidates(group_id)) == expected


async def test_two_groups_of_one_app_name_are_both_fed(store: Store) -> None:
    book, made = services(store)
    group_ids = [await store.group(), await store.group()]
    await made.register(request_of(A))
    assert [addresses(book, group_id) for group_id in group_ids] == [[A], [A]]


async def test_an_address_lives_for_ninety_seconds_after_its_beat(store: Store, clock: FakeClock) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    await clock.advance(89.9)
    assert addresses(book, group_id) == [A]
    await clock.advance(0.1)
    assert addresses(book, group_id) == []
    book.changed = False
    await book.refresh()
    assert book.changed
    await made.register(request_of(A))
    assert addresses(book, group_id) == [A]


async def test_a_change_stays_one_until_it_is_taken(store: Store) -> None:
    book, made = services(store)
    await store.group()
    await made.register(request_of(A))
    await book.refresh()
    assert book.changed


async def test_what_was_read_first_does_not_come_last(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    book, made = services(store)
    group_id = await store.group()
    read, go_on, reads = store.database.read, asyncio.Event(), 0

    async def first_read_is_slow(*args: Any) -> Any:
        nonlocal reads
        reads += 1
        first, found = reads == 1, await read(*args)
        if first:
            await go_on.wait()
        return found

    monkeypatch.setattr(store.database, "read", first_read_is_slow)
    slow = asyncio.create_task(book.refresh())
    await until(lambda: reads == 1)
    quick = asyncio.create_task(made.register(request_of(A)))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the quick one begins
    go_on.set()
    await asyncio.gather(slow, quick)
    assert addresses(book, group_id) == [A]


async def test_after_an_outage_of_the_database_who_lived_before_has_time_to_beat_again(
    store: Store, clock: FakeClock
) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    await clock.advance(60)
    await made.register(request_of(B))
    await clock.advance(29)
    await book.refresh()
    await store.database.stop()
    with pytest.raises(AssertionError):
        await book.refresh()
    await clock.advance(600)
    assert addresses(book, group_id) == [A, B]
    await store.database.start()
    await book.refresh()
    assert addresses(book, group_id) == [A, B]
    await clock.advance(2)
    # It would have been out by then without the outage as well.
    assert addresses(book, group_id) == [B]
    await book.refresh()
    await made.register(request_of(A))
    await clock.advance(44)
    await book.refresh()
    assert addresses(book, group_id) == [A]


@pytest.mark.parametrize("seconds", [3600, -3600])
async def test_setting_the_hosts_clock_kills_nobody_and_keeps_nobody_alive(
    store: Store, clock: FakeClock, seconds: int
) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    clock.step(seconds)
    assert addresses(book, group_id) == [A]
    await clock.advance(90)
    assert addresses(book, group_id) == []


async def test_an_unreachable_address_is_out_until_its_next_beat(store: Store, clock: FakeClock) -> None:
    book, made = services(store)
    group_id = await store.group()
    for address in (A, B):
        await made.register(request_of(address))
    await clock.advance(1)
    book.mark_unreachable(A)
    await book.refresh()
    assert addresses(book, group_id) == [B]
    await clock.advance(20)
    await made.register(request_of(A))
    # At once, not with the next reading: what is due meanwhile would find an executor that beats unreachable.
    assert addresses(book, group_id) == [A, B]
    await book.refresh()
    assert addresses(book, group_id) == [A, B]


async def test_a_beat_that_began_before_an_address_was_found_unreachable_does_not_bring_it_back(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    beat = store.database.write

    async def write(work: Any, *args: Any) -> Any:
        book.mark_unreachable(A)
        return await beat(work, *args)

    store.database.write = write  # type: ignore[method-assign,assignment]
    await made.register(request_of(A))
    assert addresses(book, group_id) == []


async def test_a_fixed_list_keeps_its_order_and_an_unreachable_one_is_out_for_half_a_minute(
    store: Store, clock: FakeClock
) -> None:
    book, made = services(store)
    group_id = await store.group(address_type=1, address_list=f"{B}, {A},,")
    await made.register(request_of("http://c:1"))
    await book.refresh()
    assert addresses(book, group_id) == [B, A]
    assert book.is_fixed(group_id)
    book.mark_unreachable(B)
    await clock.advance(29.9)
    assert addresses(book, group_id) == [A]
    await clock.advance(0.1)
    assert addresses(book, group_id) == [B, A]


async def test_an_address_that_leaves_gets_nothing_from_then_on(store: Store, clock: FakeClock) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    assert not book.has_left(group_id, A)
    await made.remove(request_of(A))
    assert (addresses(book, group_id), book.has_left(group_id, A)) == ([], True)
    await clock.advance(1)
    await made.register(request_of(A))
    assert (addresses(book, group_id), book.has_left(group_id, A)) == ([A], False)


async def test_an_executor_that_comes_back_in_the_same_moment_is_live(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    await made.remove(request_of(A))
    await made.register(request_of(A))
    assert addresses(book, group_id) == [A]


async def test_a_beat_that_began_before_the_removal_does_not_bring_the_address_back(store: Store) -> None:
    """An executor that stops breaks off its beat, which the admin still writes, and leaves."""
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    beat, seen = store.database.write, []

    async def write(work: Any, *args: Any) -> Any:
        answer = await beat(work, *args)
        store.database.write = beat  # type: ignore[method-assign]
        # The beat is written, and the address leaves before its task has its turn.
        book.remove("orders", A)
        seen.append(addresses(book, group_id))
        return answer

    store.database.write = write  # type: ignore[assignment]
    await made.register(request_of(A))
    assert seen == [[]]
    assert (addresses(book, group_id), book.has_left(group_id, A)) == ([], True)


async def test_a_reading_that_began_before_the_removal_does_not_bring_the_address_back(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    held, release = threading.Event(), threading.Event()

    def hold(_: Connection) -> None:
        held.set()
        assert release.wait(5)

    # The removal waits behind another transaction, so the registry still has the row when it is read.
    holding = asyncio.create_task(store.database.write(hold))
    await asyncio.to_thread(held.wait, 5)
    removing = asyncio.create_task(made.remove(request_of(A)))
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which the removal begins
    await book.refresh()
    assert addresses(book, group_id) == []
    release.set()
    await asyncio.gather(holding, removing)
    assert addresses(book, group_id) == []


async def test_a_fixed_address_cannot_leave(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group(address_type=1, address_list=A)
    await made.remove(request_of(A))
    await book.refresh()
    assert (addresses(book, group_id), book.has_left(group_id, A)) == ([A], False)


async def test_another_process_at_the_address_is_known_at_once(store: Store) -> None:
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A, instance="i-1"))
    await made.register(request_of(A, instance="i-2"))
    assert [each.instance_id for each in book.candidates(group_id)] == ["i-2"]


async def test_what_is_remembered_of_addresses_is_forgotten_in_time(store: Store, clock: FakeClock) -> None:
    book, made = services(store)
    await store.group()
    for n in range(20):
        book.mark_unreachable(f"http://h{n}/")
        await made.remove(request_of(f"http://h{n}/"))
    await clock.advance(91)
    await book.refresh()
    assert (book._out, book._left) == ({}, {})


async def test_the_stored_list_follows_the_live_addresses(store: Store, clock: FakeClock) -> None:
    _, made = services(store)
    await store.group()
    for address in (B, A):
        await made.register(request_of(address))

    async def stored() -> object:
        return await store.database.read(lambda c: c.exec_driver_sql("SELECT address_list FROM xxl_job_group").scalar())

    assert await stored() == f"{A},{B}"
    await made.remove(request_of(A))
    assert await stored() == B
    await clock.advance(91)
    assert await store.database.write(registry.store_address_lists, store.zone, store.database.now_ms()) == 1
    assert await stored() is None
    assert await store.database.write(registry.store_address_lists, store.zone, store.database.now_ms()) == 0


async def test_a_beat_that_was_under_way_at_the_removal_is_undone_for_other_nodes_as_well(
    store: Store, clock: FakeClock
) -> None:
    """They would have sent to the address for a minute and a half."""
    book, made = services(store)
    elsewhere = AddressBook(store.database)
    group_id = await store.group()
    await made.register(request_of(A))
    came_ms = store.database.now_ms()
    await clock.advance(3)
    await made.remove(request_of(A))
    await store.database.write(registry.beat, store.zone, request_of(A), came_ms)
    await elsewhere.refresh()
    assert addresses(elsewhere, group_id) == [A]
    await book.refresh()
    await book.remove_left()
    await elsewhere.refresh()
    assert addresses(elsewhere, group_id) == addresses(book, group_id) == []


async def test_who_left_and_came_again_at_another_node_is_there_again(store: Store, clock: FakeClock) -> None:
    """As an executor that is started anew behind a load balancer: it was passed over until it beat here, too."""
    book, made = services(store)
    group_id = await store.group()
    await made.register(request_of(A))
    await made.remove(request_of(A))
    await clock.advance(3)
    await store.database.write(registry.beat, store.zone, request_of(A), store.database.now_ms())
    await book.refresh()
    await book.remove_left()
    assert (addresses(book, group_id), book.has_left(group_id, A)) == ([A], False)
    await book.refresh()
    assert addresses(book, group_id) == [A]
