"""Servers and databases that are set up in another way than most: they work, or say why not."""

from collections.abc import Iterator

import pytest

from jobwheel.admin.domain.ids import NodeId
from jobwheel.admin.store.database import open_database
from jobwheel.admin.store.errors import DatabaseUnusableError
from jobwheel.kernel.clock import SystemClock
from tests.support.run_servers import Servers
from tests.support.store import open_store_at

pytestmark = pytest.mark.timeout(30)
TEXT = "back\\slash 'quotes' \"double\" `tick` % 日本 \N{ROCKET}"


async def keeps_texts(url: str) -> None:
    async with open_store_at(url, SystemClock(), fresh=True) as store:
        run = (await store.pending(NodeId(1), parameter=TEXT))[0]
        assert (await store.run_row(run.id))["executor_param"] == TEXT
        job_id = await store.job(executor_param=TEXT)
        assert (await store.job_row(job_id))["executor_param"] == TEXT


@pytest.fixture(params=["mariadb"])
def latin1(request: pytest.FixtureRequest, servers: Servers) -> Iterator[str]:
    """A MariaDB database whose own character set is another; the server's mode is put back at the end."""
    url = servers.make_database(request.param, "jobwheel_latin1")
    servers.run("mariadb", "ALTER DATABASE jobwheel_latin1 CHARACTER SET latin1")
    yield url
    servers.run("mariadb", "SET GLOBAL sql_mode = DEFAULT")


@pytest.mark.parametrize("mode", ["ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "", "ANSI,PAD_CHAR_TO_FULL_LENGTH", "ORACLE"])
async def test_the_servers_mode_does_not_matter(latin1: str, servers: Servers, mode: str) -> None:
    await servers.run_here("mariadb", f"SET GLOBAL sql_mode = '{mode}'")
    await keeps_texts(latin1)


@pytest.mark.parametrize("kind", ["postgresql"])
async def test_another_schema_will_do(kind: str, servers: Servers) -> None:
    await servers.run_here(kind, "DROP DATABASE IF EXISTS jobwheel_schema", "CREATE DATABASE jobwheel_schema")
    url = servers.running[kind].url("jobwheel_schema")
    database = open_database(url, SystemClock())
    await database.start()
    await database.write(lambda c: c.exec_driver_sql("CREATE SCHEMA jobs"))
    await database.write(
        lambda c: c.exec_driver_sql("ALTER ROLE wheel IN DATABASE jobwheel_schema SET search_path = jobs")
    )
    await database.stop()
    await keeps_texts(url)


@pytest.mark.parametrize("kind", ["postgresql"])
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_database_that_cannot_hold_every_text_is_refused(kind: str, servers: Servers, encoding: str) -> None:
    made = f"CREATE DATABASE jobwheel_encoding ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    await servers.run_here(kind, "DROP DATABASE IF EXISTS jobwheel_encoding", made)
    database = open_database(servers.running[kind].url("jobwheel_encoding"), SystemClock())
    with pytest.raises(DatabaseUnusableError, match=f"its encoding is {encoding}.*ENCODING 'UTF8'"):
        await database.start()
    await database.stop()
