from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.live_admin import LiveAdmin, live_admin


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveAdmin]:
    async with live_admin(tmp_path / "data", send_timeout_s=0.5) as started:
        yield started
