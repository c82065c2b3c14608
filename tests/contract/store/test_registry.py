import msgspec
import pytest
from sqlalchemy import Connection, select, update

from jobwheel.admin.domain.group import LIVE_FOR_MS, MOST_ADDRESS
from jobwheel.admin.domain.group_token import TokenRef
from jobwheel.admin.domain.ids import GroupId
from jobwheel.admin.store import registry, run_log
from jobwheel.admin.store.tables import job_group, job_registry
from jobwheel.wire.messages import Features, RegistryRequest
from tests.support.store import NOW_MS, Store, take_off

A, B = "http://a:9999/", "http://b:9999"


def request_of(address: str, instance: str | None = None, group: str = "EXECUTOR") -> RegistryRequest:
    features = Features(instance=instance, version="1.0.0") if instance else None
    return RegistryRequest(registry_group=group, registry_key="orders", registry_value=address, features=features)


async def beat(store: Store, address: str, at_ms: int = NOW_MS, **fields: str) -> bool:
    return await store.database.write(registry.beat, store.zone, request_of(address, **fields), at_ms)


async def rows(store: Store) -> list[tuple[str, int]]:
    query = select(job_registry.c.registry_value, job_registry.c.beat_ms).order_by(job_registry.c.id)
    return [(row[0], row[1]) for row in await store.database.read(lambda c: c.execute(query).all())]


async def live(store: Store, at_ms: int = NOW_MS) -> list[str]:
    groups = await store.database.read(registry.load_addresses, at_ms)
    return [each.address for each in groups[0].registrations]


async def test_a_beat_tells_whether_anything_is_new(store: Store) -> None:
    assert await beat(store, A)
    assert not await beat(store, A, NOW_MS + 30_000)
    assert not await beat(store, A, NOW_MS + 30_000 + LIVE_FOR_MS - 1)
    assert await beat(store, A, NOW_MS + 30_000 + 2 * LIVE_FOR_MS)
    assert await beat(store, A, NOW_MS + 30_000 + 2 * LIVE_FOR_MS, instance="i-1")
    assert not await beat(store, A, NOW_MS + 30_000 + 2 * LIVE_FOR_MS, instance="i-1")
    assert await beat(store, A, NOW_MS + 30_000 + 2 * LIVE_FOR_MS, instance="i-2")
    assert len(await rows(store)) == 1


async def test_a_beat_is_written_for_both_readers(store: Store) -> None:
    await beat(store, A, instance="i-1")
    row = await store.database.read(lambda c: c.execute(select(job_registry)).one())
    assert row.update_time.isoformat() == "2026-11-27T10:30:00"
    assert (row.beat_ms, row.instance_id) == (NOW_MS, "i-1")
    assert '"version":"1.0.0"' in row.features


async def test_how_an_executor_of_another_make_registered_is_remembered(store: Store) -> None:
    await store.group()
    for address, instance in ((A, None), (B, "i-1")):
        request = request_of(address, instance)

        def note(connection: Connection, request: RegistryRequest = request, *, is_newer: bool = True) -> bool:
            return registry.beat(connection, store.zone, request, NOW_MS, TokenRef(GroupId(1), 1), is_newer=is_newer)

        await store.database.write(note)
    await beat(store, "http://c:9999/")
    columns = select(job_registry).order_by(job_registry.c.registry_value)
    found = await store.database.read(lambda c: [registry.registration(row) for row in c.execute(columns)])
    assert [(each.is_newer, each.load is None) for each in found] == [(True, True), (False, False), (False, True)]
    await beat(store, A)
    found = await store.database.read(lambda c: [registry.registration(row) for row in c.execute(columns)])
    assert not found[0].is_newer


async def test_addresses_are_kept_byte_for_byte_and_listed_sorted(store: Store) -> None:
    await store.group()
    for address in (B, A, "http://a:9999"):
        await beat(store, address)
    assert await live(store) == ["http://a:9999", A, B]


async def test_an_address_is_live_for_ninety_seconds(store: Store) -> None:
    await store.group()
    await beat(store, A)
    assert await live(store, NOW_MS + LIVE_FOR_MS - 1) == [A]
    assert await live(store, NOW_MS + LIVE_FOR_MS) == []


async def test_a_fixed_list_keeps_its_order_and_leaves_out_what_no_run_can_hold(store: Store) -> None:
    longest = f"http://{'h' * (MOST_ADDRESS - 7)}"
    await store.group(address_type=1, address_list=f" {B} ,{longest}x,,{A},{longest}")
    assert await live(store) == [B, A, longest]
    node_id, job_id = await store.node(), await store.job()
    run_id = (await store.pending(node_id, job_id=job_id))[0].id
    there = take_off(run_id, address=longest)
    assert await store.database.write(run_log.take_off, node_id, NOW_MS, [there]) == {run_id}


async def test_rows_of_other_registry_groups_are_kept_and_ignored(store: Store) -> None:
    await store.group()
    await beat(store, A, group="ADMIN")
    assert await live(store) == []
    await store.database.write(registry.remove_forgotten, NOW_MS + 10 * 86_400_000)
    assert len(await rows(store)) == 1


async def test_rows_dead_for_a_day_are_removed(store: Store) -> None:
    await beat(store, A)
    await beat(store, B, NOW_MS + 1)
    assert await store.database.write(registry.remove_forgotten, NOW_MS + 86_400_001) == 1
    assert await rows(store) == [(B, NOW_MS + 1)]


async def test_a_removal_is_of_that_address_alone(store: Store) -> None:
    await beat(store, A)
    await beat(store, B)
    assert await store.database.write(registry.remove, request_of(A))
    assert not await store.database.write(registry.remove, request_of(A))
    assert await rows(store) == [(B, NOW_MS)]


async def test_after_a_long_stop_of_the_admin_those_that_lived_are_spared(store: Store) -> None:
    await store.group()
    await beat(store, A, NOW_MS)
    await beat(store, B, NOW_MS - LIVE_FOR_MS)
    restart_ms = NOW_MS + 3_600_000
    assert await store.database.write(registry.spare_addresses, restart_ms) == 1
    assert await live(store, restart_ms) == [A]
    assert await live(store, restart_ms + 44_999) == [A]
    assert await live(store, restart_ms + 45_000) == []


async def test_a_restart_at_once_takes_nothing_from_anybody(store: Store) -> None:
    await store.group()
    await beat(store, A)
    assert await store.database.write(registry.spare_addresses, NOW_MS + 1000) == 0
    assert await rows(store) == [(A, NOW_MS)]


async def test_with_an_empty_registry_nobody_is_spared(store: Store) -> None:
    assert await store.database.write(registry.spare_addresses, NOW_MS) == 0


async def test_beats_of_the_future_count_as_now(store: Store) -> None:
    await store.group()
    await beat(store, A, NOW_MS + 3_600_000)
    await beat(store, B, NOW_MS + 3_000_000)
    await store.database.write(registry.spare_addresses, NOW_MS)
    assert await live(store, NOW_MS) == [A, B]
    assert await live(store, NOW_MS + 45_000) == []


async def test_whether_an_address_takes_batches_is_what_its_last_beat_said(store: Store) -> None:
    await store.group()
    batched = msgspec.structs.replace(request_of(A), features=Features(instance="i-1", batch=True))
    for request, expected in ((batched, True), (request_of(A, "i-2"), False), (batched, True), (request_of(A), False)):
        await store.database.write(registry.beat, store.zone, request, NOW_MS)
        groups = await store.database.read(registry.load_addresses, NOW_MS)
        assert [each.batch for each in groups[0].registrations] == [expected]


@pytest.mark.parametrize("features", ["", "{", "[]", '{"batch": 1}', '{"version": "9"}', '"batch"', "null"])
async def test_features_that_somebody_else_wrote_announce_no_batches(store: Store, features: str) -> None:
    await store.group()
    await beat(store, A, instance="i-1")
    await store.database.write(lambda c: c.execute(update(job_registry).values(features=features)))
    groups = await store.database.read(registry.load_addresses, NOW_MS)
    assert [(each.address, each.batch) for each in groups[0].registrations] == [(A, False)]


@pytest.mark.parametrize("app_name", ["orders", "'); DROP TABLE xxl_job_group; --"])
async def test_which_app_names_have_a_group(store: Store, app_name: str) -> None:
    assert not await store.database.read(registry.has_group, app_name)
    await store.group(app_name)
    assert await store.database.read(registry.has_group, app_name)


async def test_a_fixed_list_is_read_as_it_stands(store: Store) -> None:
    await store.group(address_type=1, address_list=f" {B} ,{A},, ")
    group = (await store.database.read(registry.load_addresses, NOW_MS))[0]
    assert (group.fixed, [each.address for each in group.registrations]) == (True, [B, A])
    await store.database.write(registry.store_address_lists, store.zone, NOW_MS)
    text = await store.database.read(lambda c: c.exec_driver_sql("SELECT address_list FROM xxl_job_group").scalar())
    assert text == f" {B} ,{A},, "


async def test_executors_register_also_if_their_group_has_more_than_its_list_can_hold(store: Store) -> None:
    group_id = await store.group()
    addresses = [f"http://{at:03}{'x' * (MOST_ADDRESS - 16)}:9999/" for at in range(300)]
    assert {len(each) for each in addresses} == {MOST_ADDRESS}
    for address in addresses:
        await beat(store, address)
    assert await store.database.write(registry.store_address_lists, store.zone, NOW_MS) == 1
    (text,) = await store.database.read(
        lambda c: c.execute(select(job_group.c.address_list).where(job_group.c.id == group_id)).one()
    )
    assert text.split(",") == addresses[:256]
    assert await store.database.write(registry.store_address_lists, store.zone, NOW_MS) == 0
    assert await live(store) == addresses
