"""How the C library shares out memory among threads."""

import contextlib
import ctypes
from typing import Final

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2


def share_arenas() -> None:
    """Have the threads of this process take memory from two arenas; call it before there are any.

    By default glibc makes one for nearly each thread, and each keeps the most that its threads ever needed: what a
    database sorts for one read stays in as many places as there are readers. Other C libraries have no such thing.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)
