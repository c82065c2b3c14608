"""How fast the machine is at the moment: what the figures of two days, or of two machines, have to be read against."""

import statistics
import time
from typing import Final

_ROUNDS: Final = 9
_STEPS: Final = 200_000


def loop_ms() -> float:
    """The median time of a fixed loop in this interpreter."""
    return round(statistics.median(_loop_s() for _ in range(_ROUNDS)) * 1000, 1)


def _loop_s() -> float:
    began_s, total = time.perf_counter(), 0
    for step in range(_STEPS):
        total += step * step % 7
    return time.perf_counter() - began_s
