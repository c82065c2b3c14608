import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobwheel.admin.build import Admin, build_admin
from jobwheel.admin.settings import load_settings
from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import FakeClock
from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.store import KINDS, NOW_MS, Store, open_store_at, sqlite_url


@pytest.fixture(autouse=True)
def _process_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The host is neither in UTC nor in the installation's zone: nothing may depend on where a process runs."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path, servers: Servers) -> str:
    return sqlite_url(tmp_path) if request.param == "sqlite" else servers.url_of(request.param)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    async with open_store_at(database_url, FakeClock(NOW_MS)) as opened:
        yield opened


@pytest.fixture(params=SERVER_KINDS)
def server_url(request: pytest.FixtureRequest, servers: Servers) -> str:
    return servers.url_of(request.param)


@pytest.fixture
async def server_store(server_url: str) -> AsyncIterator[Store]:
    """A store on each server, by the host's clock: what several nodes do at once takes its time."""
    async with open_store_at(server_url, SystemClock()) as opened:
        yield opened


@pytest.fixture
async def admins(database_url: str, tmp_path: Path) -> AsyncIterator[list[Admin]]:
    """Two nodes of a cluster, or the same one twice; their engines are not started."""
    async with open_store_at(database_url, SystemClock()):
        pass
    wanted = {"data_dir": tmp_path, "database_url": database_url, "auto_create_groups": True}
    settings = load_settings({}, wanted).settings
    first = await build_admin(settings, SystemClock())
    second = first if first.database.is_for_one_node else await build_admin(settings, SystemClock())
    yield [first, second]
    for admin in {id(each): each for each in (first, second)}.values():
        await admin.database.stop()
