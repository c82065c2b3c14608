import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store import nodes
from tests.support.store import FIRST_LOOKS, NOW_MS, Store


async def test_a_node_id_is_new_at_every_start(store: Store) -> None:
    first = await store.node()
    await store.database.write(nodes.unregister, first)
    second = await store.node()
    assert second > first


async def test_a_beat_finds_its_row_or_says_that_it_is_gone(store: Store) -> None:
    node = await store.node()
    assert await store.database.write(nodes.beat, node, NOW_MS + 5000)
    assert await store.database.read(nodes.live_nodes) == [(node, "host-1", NOW_MS + 5000)]
    await store.database.write(nodes.unregister, node)
    assert not await store.database.write(nodes.beat, node, NOW_MS + 10_000)


async def test_adopting_everything_forgets_the_dead(store: Store) -> None:
    await store.node()
    heir = await store.node()
    await store.database.write(nodes.adopt_all, heir, NOW_MS, FIRST_LOOKS)
    assert [row[0] for row in await store.database.read(nodes.live_nodes)] == [heir]


@pytest.mark.parametrize("ahead_ms", [3_600_000, 60_001])
async def test_a_look_beyond_any_that_is_set_is_done_at_once(store: Store, ahead_ms: int) -> None:
    run_id = await store.sending(NodeId(9))
    await store.change_run(
        run_id, phase="unconfirmed", owner=None, unheard_ms=NOW_MS + ahead_ms, check_ms=NOW_MS + ahead_ms
    )
    await store.database.write(nodes.adopt_all, await store.node(), NOW_MS, FIRST_LOOKS)
    row = await store.run_row(run_id)
    assert (row["check_ms"], row["unheard_ms"]) == (NOW_MS, NOW_MS)


async def test_other_looks_stay_as_they_are(store: Store) -> None:
    run_id = await store.sending(NodeId(9))
    await store.change_run(
        run_id, phase="unconfirmed", owner=None, unheard_ms=NOW_MS - 70_000, check_ms=NOW_MS + 20_000
    )
    await store.database.write(nodes.adopt_all, await store.node(), NOW_MS, FIRST_LOOKS)
    row = await store.run_row(run_id)
    assert (row["check_ms"], row["unheard_ms"]) == (NOW_MS + 20_000, NOW_MS - 70_000)
