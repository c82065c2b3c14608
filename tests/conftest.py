"""Database servers for the tests that ask for them; see `tests/support/servers.py`."""

import signal
from collections.abc import Iterator

import pytest

from tests.support.run_servers import Servers
from tests.support.servers import SERVER_KINDS
from tests.support.sqlite_file import write_unsynced

_SERVERS = pytest.StashKey[Servers]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SERVERS] = Servers()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # Started in the background of a shell, which ignores Ctrl-C: so would the processes that tests start and stop.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what the chosen tests need, before the first one's time begins to count."""
    if session.config.option.collectonly:
        return
    servers = session.config.stash[_SERVERS]
    servers.start(kind for item in session.items for kind in _kinds_of(item))
    for item in session.items:
        for kind in _kinds_of(item):
            if kind in servers.missing:
                item.add_marker(pytest.mark.skip(reason=servers.missing[kind]))


def pytest_unconfigure(config: pytest.Config) -> None:
    config.stash[_SERVERS].stop()


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        write_unsynced(patch)
        yield


@pytest.fixture(scope="session")
def servers(pytestconfig: pytest.Config) -> Servers:
    return pytestconfig.stash[_SERVERS]


def _kinds_of(item: pytest.Item) -> list[str]:
    """The servers that a test is parametrised with."""
    callspec = getattr(item, "callspec", None)
    values = callspec.params.values() if callspec is not None else ()
    return [value for value in values if isinstance(value, str) and value in SERVER_KINDS]
