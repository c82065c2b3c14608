"""What the tests of this folder run beside an admin; a test without its programs is skipped, saying what is missing."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.support.packages import MissingError
from tests.support.pyxxl_environment import pyxxl_python
from tests.support.reference_executor import ReferenceExecutors
from tests.support.reference_library import ReferenceLibrary, built_library

# By the fixture that a test asks for.
_MAKERS: Final[dict[str, Callable[[], object]]] = {"library": built_library, "pyxxl": pyxxl_python}
_MADE = pytest.StashKey[dict[str, object]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get and build what the chosen tests need, before the first one's time begins to count."""
    if session.config.option.collectonly:
        return
    made = session.config.stash.setdefault(_MADE, {})
    for name, make in _MAKERS.items():
        users = [item for item in session.items if name in getattr(item, "fixturenames", ())]
        if not users:
            continue
        try:
            made[name] = make()
        except MissingError as error:
            for item in users:
                item.add_marker(pytest.mark.skip(reason=str(error)))


@pytest.fixture(scope="session")
def library(pytestconfig: pytest.Config) -> ReferenceLibrary:
    """The reference's executor library, and our programs on it."""
    library = pytestconfig.stash[_MADE]["library"]
    assert isinstance(library, ReferenceLibrary)
    return library


@pytest.fixture
def executors(library: ReferenceLibrary, tmp_path: Path) -> ReferenceExecutors:
    """Starts executors on the reference's library."""
    return ReferenceExecutors(library, tmp_path)


@pytest.fixture(scope="session")
def pyxxl(pytestconfig: pytest.Config) -> Path:
    """An interpreter that has pyxxl."""
    python = pytestconfig.stash[_MADE]["pyxxl"]
    assert isinstance(python, Path)
    return python
