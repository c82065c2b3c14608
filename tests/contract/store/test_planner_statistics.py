"""A planner that knows nothing of a table is told, once."""

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.services.planner_statistics import PlannerStatistics
from jobwheel.admin.services.turns import Turn
from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import open_database
from tests.support.run_servers import Servers
from tests.support.store import Store

RUNS, JOBS = "xxl_job_log", "xxl_job_info"


on_postgresql = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


def statistics(store: Store, node_id: int = 1, least_bytes: int = 1) -> PlannerStatistics:
    turn = Turn("planner_statistics", store.database, lambda: NodeId(node_id))
    return PlannerStatistics(store.database, store.clock, turn, least_bytes)


def forget(connection: Connection) -> None:
    """What an upgrade of the server leaves: rows, and no statistics."""
    of_both = f"('{RUNS}'::regclass, '{JOBS}'::regclass)"
    connection.exec_driver_sql(f"DELETE FROM pg_statistic WHERE starelid IN {of_both}")


def known_columns(connection: Connection, table: str) -> set[object]:
    return set(connection.exec_driver_sql("SELECT attname FROM pg_stats WHERE tablename = $1", (table,)).scalars())


def _name(url: str) -> str:
    return url.rpartition("/")[2]


async def with_run(store: Store) -> None:
    await store.pending(await store.node(), 0, job_id=await store.job())
    await store.database.write(forget)


@on_postgresql
async def test_what_the_planner_does_not_know_is_looked_at_once(store: Store) -> None:
    await with_run(store)
    taker = statistics(store)
    assert {RUNS, JOBS} <= set(await taker.run_once())
    assert {"outcome", "phase", "job_id"} <= await store.database.read(known_columns, RUNS)
    assert await statistics(store).run_once() == []
    await store.database.write(forget)
    assert await taker.run_once() == []
    assert {RUNS, JOBS} <= set(await statistics(store).run_once())


@on_postgresql
async def test_a_column_that_is_new_is_unknown(store: Store) -> None:
    await with_run(store)
    await statistics(store).run_once()
    new = f"DELETE FROM pg_statistic WHERE starelid = '{RUNS}'::regclass AND staattnum = 3"
    await store.database.write(lambda connection: connection.exec_driver_sql(new))
    assert await statistics(store).run_once() == [RUNS]


@on_postgresql
async def test_small_tables_are_left_alone(store: Store) -> None:
    await with_run(store)
    assert await statistics(store, least_bytes=1 << 40).run_once() == []


@on_postgresql
async def test_what_another_node_is_about_is_left_to_it(store: Store) -> None:
    await with_run(store)
    async with Turn("planner_statistics", store.database, lambda: NodeId(2)).taken():
        assert await statistics(store).run_once() == []
    assert RUNS in await statistics(store).run_once()


@on_postgresql
async def test_who_does_not_own_the_tables_is_told_who_can_do_it(
    store: Store, database_url: str, servers: Servers, caplog: pytest.LogCaptureFixture
) -> None:
    await with_run(store)
    rights = "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public"
    await servers.run_here("postgresql", "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN PASSWORD 'reads'")
    await store.database.write(lambda connection: connection.exec_driver_sql(f"GRANT {rights} TO reader"))
    database = open_database(
        servers.running["postgresql"].url(_name(database_url), user="reader", password="reads"), store.clock
    )
    await database.start()
    try:
        turn = Turn("planner_statistics", database, lambda: NodeId(1))
        taker = PlannerStatistics(database, store.clock, turn, 1)
        assert RUNS not in await taker.run_once()
        assert "statistics.missing" in caplog.text
        assert await taker.run_once() == []
    finally:
        await database.stop()
        await store.database.write(lambda connection: connection.exec_driver_sql("DROP OWNED BY reader"))
        await servers.run_here("postgresql", "DROP ROLE reader")
    assert RUNS in await statistics(store).run_once()


@pytest.mark.parametrize("database_url", ["sqlite", "mariadb"], indirect=True)
async def test_others_need_not_be_told(store: Store) -> None:
    await store.pending(await store.node(), 0, job_id=await store.job())
    assert await statistics(store).run_once() == []
