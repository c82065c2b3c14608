"""What servers do: connections that die, transactions in each other's way, passwords that end up in logs."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text, update
from sqlalchemy.exc import DBAPIError

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.domain.run import Outcome
from jobwheel.admin.domain.writes import Settlement
from jobwheel.admin.store import Connection, claims, nodes, schema, server_kinds
from jobwheel.admin.store.database import is_outage, open_database
from jobwheel.admin.store.errors import (
    DatabaseAwayError,
    DatabaseUnusableError,
    ScheduleLockedError,
    SchemaVersionError,
    UnknownCommitError,
)
from jobwheel.admin.store.server_database import ServerDatabase
from jobwheel.admin.store.tables import job_info
from jobwheel.kernel.clock import SystemClock
from tests.support.cutting_proxy import CuttingProxy
from tests.support.live_admin import seen
from tests.support.run_servers import Servers, connected
from tests.support.server_statements import own_id, sleep
from tests.support.servers import SERVER_KINDS
from tests.support.store import ADDRESS, FIRST_LOOKS, NOW_MS, Store, open_store_at

LATER_MS = NOW_MS + 15_001
KILL = {"postgresql": "SELECT pg_terminate_backend({})", "mariadb": "KILL {}"}


@pytest.fixture(params=SERVER_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def store(kind: str, servers: Servers) -> AsyncIterator[Store]:
    async with open_store_at(servers.url_of(kind), SystemClock()) as opened:
        yield opened


def server_of(store: Store) -> ServerDatabase:
    assert isinstance(store.database, ServerDatabase)
    return store.database


def insert_lock(connection: Connection, name: str) -> None:
    connection.execute(text("INSERT INTO xxl_job_lock (lock_name) VALUES (:name)"), {"name": name})


async def names(store: Store) -> list[str]:
    query = text("SELECT lock_name FROM xxl_job_lock ORDER BY lock_name")
    return list(await store.database.read(lambda c: c.execute(query).scalars().all()))


async def test_what_reads_cannot_write(store: Store) -> None:
    with pytest.raises(DatabaseUnusableError, match=r"(?i)can only be read.*read.only"):
        await store.database.read(insert_lock, "a")
    assert await names(store) == []


async def test_the_clock_is_the_servers(kind: str, servers: Servers) -> None:
    async with open_store_at(servers.url_of(kind), SystemClock()) as store:
        for _ in range(2):
            # Server and tests share the machine's clock; a wrong zone would be off by quarters of hours.
            assert abs(store.database.now_ms() - SystemClock().now()) < 1000
            await store.database.measure_clock()


@pytest.mark.parametrize("fault", ["password", "user", "database", "port"])
async def test_a_server_that_does_not_let_us_in_is_named_with_the_reason(
    kind: str, servers: Servers, fault: str
) -> None:
    server = servers.running[kind]
    urls = {
        "password": (server.url("jobwheel_test", password="entirely-wrong"), "password of 'wheel' is wrong"),
        "user": (server.url("jobwheel_test", user="nobody_known"), "nobody_known"),
        "database": (server.url("never_made"), "there is no database 'never_made'"),
        "port": (server.url("jobwheel_test").replace(f":{server.port}/", ":1/"), r"(?i)connect"),
    }
    url, words = urls[fault]
    database = open_database(url, SystemClock())
    with pytest.raises(DatabaseUnusableError, match=words) as caught:
        await database.start()
    told = "".join(traceback.format_exception(caught.value))
    assert server.password not in told
    assert "entirely-wrong" not in told
    assert f"{kind}://" in caught.value.message


async def test_an_old_server_is_refused(kind: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_kinds, "_found", lambda _: (7, 4))
    with pytest.raises(DatabaseUnusableError, match=rf"is {kind} 7\.4, and 1[04].* is the oldest that will do"):
        await open_database(servers.url_of(kind), SystemClock()).start()


async def test_a_missing_driver_is_named(kind: str, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    package = server_of_kind(kind)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DatabaseUnusableError, match=rf"driver {package} is missing: install jobwheel\[admin\]"):
        await open_database(servers.url_of(kind), SystemClock()).start()


def server_of_kind(kind: str) -> str:
    return server_kinds.SERVER_KINDS[kind].package


async def test_who_may_not_make_the_schema_is_told(kind: str, servers: Servers) -> None:
    servers_url = servers.running[kind].url("jobwheel_rights", user="weak", password="made-up-3f9c")
    host = "@'127.0.0.1'" if kind == "mariadb" else ""
    password = "IDENTIFIED BY" if kind == "mariadb" else "PASSWORD"
    await servers.run_here(
        kind,
        "DROP DATABASE IF EXISTS jobwheel_rights",
        "CREATE DATABASE jobwheel_rights",
        f"DROP USER IF EXISTS weak{host}",
        f"CREATE USER weak{host} {password} 'made-up-3f9c'",
        *([f"GRANT SELECT, INSERT, UPDATE, DELETE ON jobwheel_rights.* TO weak{host}"] if kind == "mariadb" else []),
    )
    database = open_database(servers_url, SystemClock())
    await database.start()
    try:
        with pytest.raises(SchemaVersionError, match=r"has schema nothing.*may not change it: run"):
            await database.write(schema.prepare, database.where)
    finally:
        await database.stop()


async def test_a_connection_that_dies_before_the_commit_loses_and_doubles_nothing(store: Store, kind: str) -> None:
    tries = []

    def die_once(connection: Connection) -> None:
        insert_lock(connection, "a")
        tries.append(own_id(connection))
        if len(tries) == 1:
            connection.exec_driver_sql(KILL[kind].format(tries[0]))
            connection.exec_driver_sql("SELECT 1")

    await store.database.write(die_once)
    assert len(set(tries)) == 2
    assert await names(store) == ["a"]


async def test_connections_that_died_while_idle_are_replaced(store: Store, kind: str, servers: Servers) -> None:
    dead = [await store.database.write(own_id), await store.database.read(own_id)]
    await servers.run_here(kind, *(KILL[kind].format(each) for each in dead))
    await store.database.write(insert_lock, "a")
    assert await names(store) == ["a"]
    assert await store.database.write(own_id) not in dead


async def test_a_connection_that_always_dies_is_given_up_soon(store: Store, kind: str) -> None:
    tries = []

    def die(connection: Connection) -> None:
        tries.append(own_id(connection))
        connection.exec_driver_sql(KILL[kind].format(tries[-1]))
        connection.exec_driver_sql("SELECT 1")

    with pytest.raises(DatabaseAwayError) as caught:
        await store.database.write(die)
    assert is_outage(caught.value)
    assert len(tries) == 4
    assert await names(store) == []


async def test_a_commit_of_unknown_outcome_is_told_and_not_repeated(store: Store, kind: str, servers: Servers) -> None:
    server = servers.running[kind]
    proxy = CuttingProxy(server.port, b"COMMIT")
    async with proxy.running() as port:
        database = open_database(server.url("jobwheel_test").replace(f":{server.port}/", f":{port}/"), SystemClock())
        await database.start()
        try:
            await database.write(insert_lock, "a")
            proxy.armed = True
            with pytest.raises(UnknownCommitError, match="lost while a transaction was committed") as caught:
                await database.write(insert_lock, "b")
            assert is_outage(caught.value)
            assert server.password not in caught.value.message
            await database.write(insert_lock, "c")
        finally:
            await database.stop()
    assert proxy.cuts == 1
    assert await names(store) == ["a", "b", "c"]


async def test_a_server_that_goes_away_is_an_outage_and_comes_back(store: Store, kind: str, servers: Servers) -> None:
    server = servers.running[kind]
    proxy = CuttingProxy(server.port, b"")
    async with proxy.running() as port:
        database = open_database(server.url("jobwheel_test").replace(f":{server.port}/", f":{port}/"), SystemClock())
        await database.start()
        await database.write(insert_lock, "a")
    try:
        for call in (database.write(insert_lock, "b"), database.read(sleep, 0)):
            began_s = SystemClock().monotonic()
            with pytest.raises(Exception, match=r"(?i)connect") as caught:
                await call
            assert isinstance(caught.value, Exception)
            assert is_outage(caught.value)
            assert server.password not in str(caught.value)
            assert SystemClock().monotonic() - began_s < 5
        async with proxy.running(port):
            await database.write(insert_lock, "c")
            await database.stop()
    finally:
        await database.stop()
    assert await names(store) == ["a", "c"]


async def test_a_write_that_is_cancelled_leaves_nothing(store: Store) -> None:
    begun = asyncio.Event()

    def work(connection: Connection) -> None:
        insert_lock(connection, "a")
        begun.set()
        sleep(connection, 1)

    writing = asyncio.create_task(store.database.write(work))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert server_of(store).checked_out == 0
    # It would wait for the row if the transaction were still open.
    await store.database.write(insert_lock, "a")
    assert await names(store) == ["a"]


async def test_two_that_deadlock_both_come_to_their_end(store: Store) -> None:
    for name in ("a", "b"):
        await store.database.write(insert_lock, name)
    tries = []

    def lock(connection: Connection, first: str, second: str) -> None:
        tries.append(first)
        for name in (first, second):
            connection.execute(text("SELECT 1 FROM xxl_job_lock WHERE lock_name = :name FOR UPDATE"), {"name": name})
            sleep(connection, 0.1)

    await asyncio.gather(store.database.write(lock, "a", "b"), store.database.write(lock, "b", "a"))
    assert len(tries) >= 3


async def test_more_writers_than_connections_take_turns(kind: str, servers: Servers) -> None:
    database = open_database(servers.url_of(kind), SystemClock(), connections=2)
    await database.start()
    try:
        await asyncio.gather(*(database.write(sleep, 0.01) for _ in range(20)))
        await asyncio.gather(*(database.read(sleep, 0.01) for _ in range(20)))
    finally:
        await database.stop()


async def test_two_admins_that_start_at_once_make_one_schema(kind: str, servers: Servers) -> None:
    await servers.run_here(kind, "DROP DATABASE IF EXISTS jobwheel_race", "CREATE DATABASE jobwheel_race")
    nodes = [open_database(servers.running[kind].url("jobwheel_race"), SystemClock()) for _ in range(2)]
    for node in nodes:
        await node.start()
    try:
        await asyncio.gather(*(node.write(schema.prepare, "here") for node in nodes))
        assert await nodes[1].read(schema.current_version) == schema.newest_version()
    finally:
        for node in nodes:
            await node.stop()


async def test_what_the_driver_has_to_say_does_not_reach_standard_error(
    store: Store, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        await store.database.write(insert_or_warn[kind])
    assert capfd.readouterr() == ("", "")


insert_or_warn = {
    "postgresql": lambda c: c.exec_driver_sql("DO $$ BEGIN RAISE WARNING 'something odd'; END $$"),
    "mariadb": lambda c: c.exec_driver_sql("INSERT IGNORE INTO xxl_job_lock (lock_name) VALUES ('a')"),
}


async def test_a_batch_larger_than_a_packet_is_written(store: Store) -> None:
    node = await store.node()
    runs = await store.pending(node, *range(NOW_MS, NOW_MS + 330))
    await store.database.write(lambda c: c.execute(text("UPDATE xxl_job_log SET phase = 'sending'")))
    message = "\N{ROCKET}" * 15_000
    results = [Settlement(run.id, NOW_MS, 200, Outcome.SUCCEEDED, message) for run in runs]
    assert len((await store.apply(node, *results)).ended) == 330
    assert (await store.run_row(runs[-1].id))["handle_msg"] == message


async def bury(store: Store, heir: NodeId) -> list[nodes.Heritage]:
    return await store.database.write(nodes.adopt_dead, heir, LATER_MS, 15_000, FIRST_LOOKS)


async def test_an_heir_does_not_wait_for_rows_that_a_frozen_node_holds(
    store: Store, kind: str, servers: Servers
) -> None:
    dead, heir = await store.node(), await store.node()
    held, free = await store.pending(dead, NOW_MS, NOW_MS + 1000)
    await store.database.write(nodes.beat, heir, LATER_MS)
    async with connected(servers.running[kind], "jobwheel_test") as frozen:
        await frozen.exec_driver_sql("BEGIN")
        sent = f"phase = 'sending', executor_address = '{ADDRESS}'"
        await frozen.exec_driver_sql(f"UPDATE xxl_job_log SET {sent} WHERE id = {held.id}")
        # Long before any lock's time is up.
        async with asyncio.timeout(3):
            assert await bury(store, heir) == [nodes.Heritage(dead, nodes.Adopted(1, 0))]
            assert await bury(store, heir) == []
        await frozen.exec_driver_sql("COMMIT")
    assert await bury(store, heir) == [nodes.Heritage(dead, nodes.Adopted(0, 1))]
    owners = [(await store.run_row(run.id))["owner"] for run in (held, free)]
    assert owners == [None, heir]


async def test_an_heir_does_not_wait_for_a_node_that_was_frozen_in_its_heartbeat(
    store: Store, kind: str, servers: Servers
) -> None:
    dead, heir = await store.node(), await store.node()
    await store.database.write(nodes.beat, heir, LATER_MS)
    async with connected(servers.running[kind], "jobwheel_test") as frozen:
        await frozen.exec_driver_sql("BEGIN")
        await frozen.exec_driver_sql(f"UPDATE jobwheel_node SET heartbeat_ms = {NOW_MS + 1} WHERE id = {dead}")
        async with asyncio.timeout(3):
            assert await bury(store, heir) == []
        await frozen.exec_driver_sql("ROLLBACK")
    assert [each.dead for each in await bury(store, heir)] == [dead]


async def test_the_schedule_is_free_again_when_its_holder_is_frozen(
    store: Store, kind: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.job(schedule_type="CRON", trigger_next_time=NOW_MS)
    await store.database.write(claims.lock_schedule)
    monkeypatch.setattr(server_kinds, "_IDLE_S", 1)
    frozen = open_database(servers.url_of(kind), SystemClock())
    assert isinstance(frozen, ServerDatabase)
    await frozen.start()
    try:
        async with frozen._engines[False].connect() as connection:
            await connection.run_sync(claims.lock_schedule)
            await connection.execute(update(job_info).values(trigger_next_time=NOW_MS + 1000))
            with pytest.raises(ScheduleLockedError):
                await store.database.write(claims.lock_schedule)
            # It says nothing any more, and the others need not wait for the minute that the setting gives.
            await seen(lambda: free_schedule(store), 5)
            # Nor does what it wrote count when it wakes.
            with pytest.raises(DBAPIError):
                await connection.execute(text("SELECT 1"))
            await connection.invalidate()
    finally:
        await frozen.stop()
    next_time = text("SELECT trigger_next_time FROM xxl_job_info")
    assert await store.database.read(lambda c: c.execute(next_time).scalar()) == NOW_MS


async def free_schedule(store: Store) -> bool:
    """Whether a claim has the schedule for itself."""
    try:
        await store.database.write(claims.lock_schedule)
    except ScheduleLockedError:
        return False
    return True


async def test_a_transaction_that_hangs_is_ended_by_the_server(store: Store, kind: str) -> None:
    query = {
        "postgresql": "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
        "mariadb": "SELECT @@SESSION.idle_transaction_timeout * 1000",
    }
    found = await store.database.write(lambda c: c.exec_driver_sql(query[kind]).scalar_one())
    assert int(found) == 60_000
