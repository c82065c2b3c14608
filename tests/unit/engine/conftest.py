from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.kernel.clock import SystemClock
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.client import WireClient
from tests.support.engine_parts import NOW_MS
from tests.support.http_peer import HttpPeer
from tests.support.store import Store, open_store


@pytest.fixture
async def peer() -> AsyncIterator[HttpPeer]:
    async with HttpPeer() as started:
        yield started


@pytest.fixture
async def wire() -> AsyncIterator[WireClient]:
    client = WireClient(SystemClock())
    await client.start()
    yield client
    await client.stop()


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock(NOW_MS)


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    async with open_store("sqlite", tmp_path, clock) as opened:
        yield opened
