import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from jobwheel.admin.build import build_admin
from jobwheel.admin.settings import load_settings
from tests.support.live_admin import CLOCK, LiveAdmin, live_admin


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory as the first start leaves it; a copy of it starts in a third of the time."""
    path = tmp_path_factory.mktemp("prepared") / "data"

    async def prepare() -> None:
        admin = await build_admin(load_settings({}, {"data_dir": path}).settings, CLOCK)
        await admin.database.stop()

    asyncio.run(prepare())
    return path


@pytest.fixture
def send_timeout_s() -> float:
    """How long the admin waits for an answer: on a busy machine no executor that answers is too late for it.

    Tests of answers that never come parametrise it.
    """
    return 20.0


@pytest.fixture
async def live(tmp_path: Path, prepared: Path, send_timeout_s: float) -> AsyncIterator[LiveAdmin]:
    shutil.copytree(prepared, tmp_path / "data")
    async with live_admin(tmp_path / "data", send_timeout_s=send_timeout_s) as started:
        yield started
