"""Runs measurements, one after the other or some at the same time, each in a process beside this one.

Processes, not threads: what makes the schema has one state for all threads.
"""

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor

from benchmarks.report import Figures
from tests.support.servers import SERVER_KINDS, ServerMissingError, install

Measurements = Mapping[str, Callable[[], Figures]]


def measure_all(measurements: Measurements, at_once: int) -> dict[str, Figures]:
    """The figures of each; none if a server is missing."""
    # Several that install the same server at once would be in each other's way.
    for kind in SERVER_KINDS:
        with contextlib.suppress(ServerMissingError):
            install(kind)
    with ProcessPoolExecutor(at_once, multiprocessing.get_context("spawn")) as pool:
        measured = {name: pool.submit(_figures, measure) for name, measure in measurements.items()}
        return {name: future.result() for name, future in measured.items()}


def _figures(measure: Callable[[], Figures]) -> Figures:
    try:
        return measure()
    except ServerMissingError as error:
        print(error, file=sys.stderr)
        return {}
