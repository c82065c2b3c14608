from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.admin_harness import AdminHarness, admin_harness


@pytest.fixture
async def admin(tmp_path: Path) -> AsyncIterator[AdminHarness]:
    async with admin_harness(tmp_path) as harness:
        yield harness
