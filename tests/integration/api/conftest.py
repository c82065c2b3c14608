from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.admin_harness import AdminHarness, admin_harness
from tests.support.scope_things import Things, make_things


@pytest.fixture
async def admin(tmp_path: Path) -> AsyncIterator[AdminHarness]:
    async with admin_harness(tmp_path) as harness:
        yield harness


@pytest.fixture
async def things(admin: AdminHarness) -> Things:
    await make_things(admin, "billing")
    return await make_things(admin, "orders")
