"""A system that gives no more threads."""

import contextlib
import threading
from collections.abc import Iterator

import pytest


@contextlib.contextmanager
def refused_threads() -> Iterator[None]:
    """Within the block no thread of this process starts, as where a limit of the system is reached."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        yield
