from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jobwheel import Executor
from tests.support.http_peer import unused_port
from tests.support.recording_admin import RecordingAdmin

MakeExecutor = Callable[..., Executor]


@pytest.fixture
def admin() -> Iterator[RecordingAdmin]:
    with RecordingAdmin() as recording:
        yield recording


@pytest.fixture
def make_executor(admin: RecordingAdmin, tmp_path: Path) -> Iterator[MakeExecutor]:
    """Makes executors that are stopped after the test; arguments go before what suits most tests."""
    made: list[Executor] = []

    def make(**arguments: object) -> Executor:
        usual: dict[str, object] = {
            "app_name": "demo",
            "admin": admin.url,
            "port": unused_port(),
            "log_path": tmp_path / "executor",
            "stop_deadline_s": 4,
        }
        executor = Executor(**{**usual, **arguments})  # type: ignore[arg-type]  # the test says what it means
        made.append(executor)
        return executor

    yield make
    for executor in made:
        executor.stop_in_background()


@pytest.fixture
def executor(make_executor: MakeExecutor) -> Executor:
    return make_executor()
