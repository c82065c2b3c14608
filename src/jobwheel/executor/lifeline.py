"""Ends what this process has started when it ends itself, however that happens."""

import contextlib
import fcntl
import os
import signal
import sys
from types import TracebackType
from typing import Self

from jobwheel.executor.forked import close_in_children


def tie(lifeline: int, group: int) -> None:
    """Have the kernel kill a process group when the other end of the pipe closes. On Linux; elsewhere nothing.

    It does so as long as somebody in the group has `lifeline` open.
    """
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -group)
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


class Lifeline:
    """A pipe for a process group to inherit `descriptor` of: it is killed if this process ends inside the block."""

    def __init__(self) -> None:
        self.descriptor, self._ours = os.pipe()
        # A child that a handler forks, and that outlives this process, must not hold it.
        close_in_children(self, Lifeline._let_go)

    def __enter__(self) -> Self:
        return self

    def tie(self, group: int) -> None:
        """From here on. Nothing if the group is gone already."""
        with contextlib.suppress(ProcessLookupError):
            tie(self.descriptor, group)

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        # What the group has left behind may go on, and has the pipe open still.
        flags = fcntl.fcntl(self.descriptor, fcntl.F_GETFL)
        fcntl.fcntl(self.descriptor, fcntl.F_SETFL, flags & ~os.O_ASYNC)
        self._let_go()
        os.close(self.descriptor)

    def _let_go(self) -> None:
        # The number first: once it is free, it may be given to another file.
        ours, self._ours = self._ours, -1
        if ours >= 0:
            os.close(ours)
