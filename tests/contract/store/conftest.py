import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from jobwheel.kernel.fake_clock import FakeClock
from tests.support.store import KINDS, NOW_MS, Store, open_store


@pytest.fixture(autouse=True)
def _process_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The host is neither in UTC nor in the installation's zone: nothing may depend on where a process runs."""
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=KINDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(request.param, tmp_path, FakeClock(NOW_MS)) as opened:
        yield opened
