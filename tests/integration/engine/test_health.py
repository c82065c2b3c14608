"""Red with the reason, and green by itself afterwards, on servers, where there is most that can go wrong."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from jobwheel.admin.engine import engine
from jobwheel.admin.store.server_database import ServerDatabase
from jobwheel.admin.store.server_kinds import SERVER_KINDS as SERVER_KINDS_BY_SCHEME
from tests.support.cutting_proxy import CuttingProxy
from tests.support.frozen_server import freezable
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin, seen, until
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import open_store_at

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(params=SERVER_KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def url(kind: str, servers: Servers) -> str:
    async with open_store_at(servers.url_of(kind), CLOCK):
        pass
    return servers.url_of(kind)


@contextlib.asynccontextmanager
async def watched(url: str, folder: Path) -> AsyncIterator[tuple[LiveAdmin, httpx.AsyncClient]]:
    async with (
        live_admin(folder / "data", database_url=url, database_timeout_s=1.0) as live,
        httpx.AsyncClient(base_url=live.url) as client,
    ):
        await green(client)
        yield live, client


@contextlib.asynccontextmanager
async def another_session(url: str) -> AsyncIterator[AsyncConnection]:
    scheme = url.partition(":")[0]
    made = create_async_engine(url.replace(scheme, SERVER_KINDS_BY_SCHEME[scheme].driver, 1))
    try:
        async with made.connect() as connection:
            yield connection
    finally:
        await made.dispose()


async def red(client: httpx.AsyncClient, code: str, words: str, within_s: float = 20.0) -> None:
    """Return once health is red with this reason."""

    async def look() -> bool:
        reply = await client.get("/health")
        reasons = reply.json()["reasons"]
        assert reply.status_code == (503 if reasons else 200)
        assert "sqlalchemy" not in reply.text
        return any(each["code"] == code and words in each["message"] for each in reasons)

    await seen(look, within_s)


async def green(client: httpx.AsyncClient, within_s: float = 20.0) -> None:
    async def look() -> bool:
        return bool((await client.get("/health")).json() == {"status": "green", "reasons": []})

    await seen(look, within_s)


async def test_a_lock_row_that_somebody_holds(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_SILENT_AFTER_S", 2.0)
    async with watched(url, tmp_path) as (_, client):
        async with another_session(url) as session, session.begin():
            await session.execute(text("SELECT 1 FROM xxl_job_lock WHERE lock_name = 'schedule_lock' FOR UPDATE"))
            await red(client, "no_scheduling_pass", "holds the row schedule_lock of xxl_job_lock")
        await green(client)


async def test_a_clock_that_is_off(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched(url, tmp_path) as (live, client):
        database = live.admin.database
        assert isinstance(database, ServerDatabase)
        asked = database._origin_of_clock
        monkeypatch.setattr(database, "_origin_of_clock", lambda connection: asked(connection) - 5000)
        await red(client, "clock_off", "this host's clock is +5.0 s off the database's: it plans nothing")
        monkeypatch.undo()
        # The next heartbeat asks the server for its clock.
        await green(client)


async def test_a_database_that_is_away(
    kind: str, url: str, servers: Servers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = servers.running[kind].port
    proxy = CuttingProxy(port, b"")
    async with contextlib.AsyncExitStack() as stack:
        first = await stack.enter_async_context(contextlib.AsyncExitStack())
        mine = await first.enter_async_context(proxy.running())
        live, client = await stack.enter_async_context(watched(url.replace(f":{port}/", f":{mine}/"), tmp_path))
        await first.aclose()
        await red(client, "loop_failing", "is away: ")
        async with live.executor() as executor:
            answer = await executor.post("registry", executor.registration())
        assert (answer["code"], answer["msg"]) == (500, "the database is away: send it again later")
        assert not [each for each in caplog.records if each.name.startswith("jobwheel.wire") and each.exc_info]
        async with proxy.running(mine):
            await green(client)
            await stack.aclose()


async def test_a_server_that_hangs_stops_no_loop(kind: str, url: str, servers: Servers, tmp_path: Path) -> None:
    with freezable(servers.running[kind]) as server:
        async with watched(url, tmp_path) as (live, client):
            server.freeze()
            await red(client, "loop_failing", "has not answered within 1 s")
            server.thaw()
            await green(client)
            passes = {loop.name: loop.passes for loop in live.admin.engine._loops if loop.name != "upkeep"}
            await until(
                lambda: all(loop.passes > passes[loop.name] for loop in live.admin.engine._loops if loop.name in passes)
            )
