"""How the C library shares out memory among threads."""

import contextlib
import ctypes
from typing import Final

_M_ARENA_MAX: Final = -8
_ARENAS: Final = 2
_M_MMAP_THRESHOLD: Final = -3
_LARGE: Final = 256 * 1024


def share_arenas() -> None:
    """Have the threads of this process take memory from two arenas; call it before there are any.

    By default glibc makes one for nearly each thread, and each keeps the most that its threads ever needed: what a
    database sorts for one read stays in as many places as there are readers. Other C libraries have no such thing.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, _ARENAS)


def return_large_pieces() -> None:
    """Have what is large go back to the system as soon as it is free, however large it was.

    By default glibc takes the first large piece that becomes free as a sign that more come, and makes the next ones
    of that size among the small ones, which then lie between them for good: two megabytes for each read that sorts.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
