"""Servers that hang: the connection is open, and nothing comes."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from jobwheel.admin.store import Connection
from jobwheel.admin.store.database import is_outage, open_database
from jobwheel.admin.store.errors import DatabaseSilentError, UnknownCommitError
from jobwheel.admin.store.server_database import ServerDatabase
from jobwheel.kernel.clock import SystemClock
from tests.support.frozen_server import FrozenServer, freezable
from tests.support.run_servers import Servers
from tests.support.server_statements import own_id, sleep
from tests.support.servers import SERVER_KINDS
from tests.support.store import open_store_at

CLOCK = SystemClock()
TIMEOUT_S = 0.5
READ = text("SELECT lock_name FROM xxl_job_lock ORDER BY lock_name")


@pytest.fixture(params=SERVER_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server(kind: str, servers: Servers) -> Iterator[FrozenServer]:
    with freezable(servers.running[kind]) as frozen:
        yield frozen


@pytest.fixture
async def database(kind: str, servers: Servers) -> AsyncIterator[ServerDatabase]:
    async with open_store_at(servers.url_of(kind), CLOCK):
        pass
    opened = open_database(servers.url_of(kind), CLOCK, timeout_s=TIMEOUT_S)
    assert isinstance(opened, ServerDatabase)
    await opened.start()
    yield opened
    await opened.stop()


def insert(connection: Connection, name: str) -> None:
    connection.execute(text("INSERT INTO xxl_job_lock (lock_name) VALUES (:name)"), {"name": name})


def names(connection: Connection) -> list[str]:
    return list(connection.execute(READ).scalars())


async def test_a_read_and_a_write_end_in_time_and_the_next_ones_work(
    database: ServerDatabase, server: FrozenServer
) -> None:
    server.freeze()
    for call in (database.read(names), database.write(insert, "a")):
        began_s = CLOCK.monotonic()
        with pytest.raises(DatabaseSilentError, match=r"has not answered within 0\.5 s.*TIMEOUT_S") as caught:
            await call
        assert is_outage(caught.value)
        # The driver says good-bye for two seconds more.
        assert CLOCK.monotonic() - began_s < TIMEOUT_S + 3
    assert database.checked_out == 0
    server.thaw()
    await database.write(insert, "b")
    assert await database.read(names) == ["b"]


async def test_a_commit_that_gets_no_answer_is_of_unknown_outcome(
    database: ServerDatabase, server: FrozenServer
) -> None:
    def write(connection: Connection) -> None:
        insert(connection, "a")
        server.freeze()

    with pytest.raises(UnknownCommitError):
        await database.write(write)
    server.thaw()
    assert database.checked_out == 0
    await database.write(insert, "b")
    # It arrived, in fact: nobody could know.
    assert "b" in await database.read(names)


async def test_connections_as_old_as_one_that_fell_silent_are_not_used_again(
    kind: str, database: ServerDatabase, server: FrozenServer
) -> None:
    def slow_id(connection: Connection) -> int:
        sleep(connection, 0.05)
        return own_id(connection)

    old = set(await asyncio.gather(*(database.write(slow_id) for _ in range(4))))
    assert len(old) > 1
    server.freeze()
    with pytest.raises(DatabaseSilentError):
        await database.write(slow_id)
    server.thaw()
    new = set(await asyncio.gather(*(database.write(slow_id) for _ in range(4))))
    assert not old & new


async def test_a_statement_that_takes_too_long_is_given_up_and_a_change_of_the_schema_is_not(
    kind: str, database: ServerDatabase
) -> None:
    def slowly(connection: Connection) -> None:
        insert(connection, "a")
        sleep(connection, TIMEOUT_S * 2)

    with pytest.raises(DatabaseSilentError):
        await database.write(slowly)
    await database.write_patiently(slowly)
    assert await database.read(names) == ["a"]


async def test_a_server_that_is_silent_at_the_start_is_told(kind: str, servers: Servers, server: FrozenServer) -> None:
    server.freeze()
    database = open_database(servers.url_of(kind), CLOCK, timeout_s=TIMEOUT_S)
    with pytest.raises(DatabaseSilentError):
        await database.start()
    await database.stop()


async def test_a_node_that_vanishes_in_a_transaction_does_not_hold_its_locks_for_hours(
    kind: str, database: ServerDatabase
) -> None:
    query = {
        "postgresql": "SELECT setting FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'",
        "mariadb": "SELECT 1000 * @@SESSION.idle_transaction_timeout",
    }[kind]
    assert int(await database.write(lambda c: c.exec_driver_sql(query).scalar_one())) == 60_000


@pytest.mark.parametrize("kind", ["mariadb"])
async def test_a_connection_is_broken_off_in_the_moment_in_which_it_is_made(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver's waiting for the connection swallowed it, and then the greeting was waited for without end."""
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def broken_off(*args: Any, **kwargs: Any) -> Any:
        made = await connect(*args, **kwargs)
        starting.cancel()
        return made

    with socket.create_server(("127.0.0.1", 0)) as silent:
        database = open_database(f"{kind}://wheel:secret@127.0.0.1:{silent.getsockname()[1]}/jobwheel", CLOCK)
        monkeypatch.setattr(loop, "create_connection", broken_off)
        starting = asyncio.create_task(database.start())
        done, _ = await asyncio.wait({starting}, timeout=5)
    assert done
    assert starting.cancelled()
