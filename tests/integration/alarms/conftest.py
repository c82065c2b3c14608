from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.kernel.fake_clock import FakeClock
from tests.support.alarm_scene import AlarmScene, alarm_scene
from tests.support.store import NOW_MS, open_store_at, sqlite_url


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[AlarmScene]:
    async with open_store_at(sqlite_url(tmp_path), FakeClock(NOW_MS)) as store, alarm_scene(store) as made:
        yield made
