"""Five executors, one of them dead: `python -m benchmarks.dead [--seconds N] [--rate N] [--database KIND] [--json]`.

The dead one is behind what drops packets: whoever connects to it waits for the time-out. Worse, its beats go on, each
second, so it is tried again and again. Each executor has a group of its own, and a fifth of the runs. In one group the
runs that the dead one had first would be late by the time-out, by which the figure would tell their share and nothing
else; here no run at the other four has anything to do with it, and what makes them late is its hold on the lane, the
memory and the database. Lateness is that of the four, from the due time to the arrival. Lost: one of their runs that
was not executed, or any instant without a run; doubled: run twice.
"""

import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

import httpx

from benchmarks.load import WARM_UP_S, Window, fill, lateness, now_ms, start_jobs, stop_jobs, tally
from benchmarks.place import Admin, Executor, Place, running_admin, running_executor, throw_away_place
from benchmarks.report import Figures, run_alone
from jobwheel.wire.messages import TOKEN_HEADER

_ALIVE: Final = ("first", "second", "third", "fourth")
_DEAD: Final = "dead"
_DEAD_GROUP: Final = len(_ALIVE) + 1


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured; `rate` is of all five together, in runs a second."""

    seconds: float = 60.0
    rate: int = 500
    database: str = "sqlite"
    warm_up_s: float = WARM_UP_S


def measure(load: Load) -> Figures:
    """Run it; everything it starts has ended when this returns."""
    with ExitStack() as stack:
        place = stack.enter_context(throw_away_place(load.database))
        fill(place, load.rate, (*_ALIVE, _DEAD))
        admin = stack.enter_context(running_admin(place))
        alive = [stack.enter_context(running_executor(place, [admin], app_name=name)) for name in _ALIVE]
        dead = stack.enter_context(_dead_address())
        return _measure_in(place, load, admin, alive, dead)


def _measure_in(place: Place, load: Load, admin: Admin, alive: list[Executor], dead: str) -> Figures:
    start_jobs(place)
    _beat_for(load.warm_up_s, place, admin, dead)
    began_ms = now_ms()
    _beat_for(load.seconds, place, admin, dead)
    window = Window(began_ms, now_ms())
    stop_jobs(place)
    executions = [execution for executor in alive for execution in executor.executions()]
    late = lateness(executions, window)
    tried = place.count("xxl_job_log WHERE executor_address = :dead", dead=dead)
    if not tried:
        raise RuntimeError("nothing was sent to the dead executor, so nothing is measured")
    found = tally(place, executions)
    failed = place.count("xxl_job_log WHERE outcome = 'failed' AND job_group <> :dead", dead=_DEAD_GROUP)
    return {
        "executions": len(executions),
        "lateness_p50_ms": late.p50_ms,
        "lateness_p99_ms": late.p99_ms,
        "tried_at_the_dead": tried,
        **found,
        "lost": found["lost"] + failed,
    }


@contextmanager
def _dead_address() -> Iterator[str]:
    """An address where a connection is neither made nor refused: the queue is full, and the system drops what comes."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        host, port = listener.getsockname()
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.settimeout(0)
            waiting.connect_ex((host, port))
        _expect_silence(host, port)
        yield f"http://{host}:{port}/"


def _expect_silence(host: str, port: int) -> None:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        try:
            probe.connect((host, port))
        except TimeoutError:
            return
    raise RuntimeError("this system connects although the queue is full: there is no dead executor to measure with")


def _beat_for(seconds: float, place: Place, admin: Admin, address: str) -> None:
    """Let so much time pass, in which the dead executor registers each second."""
    beat = {"registryGroup": "EXECUTOR", "registryKey": _DEAD, "registryValue": address}
    until_s = time.perf_counter() + seconds
    with httpx.Client(headers={TOKEN_HEADER: place.token}, timeout=30) as client:
        while (left_s := until_s - time.perf_counter()) > 0:
            client.post(f"{admin.url}/api/registry", json=beat).raise_for_status()
            time.sleep(min(1.0, left_s))


def main() -> int:
    return run_alone(
        __doc__, Load(), measure, {"seconds": None, "rate": "runs a second, of all five together", "database": None}
    )


if __name__ == "__main__":
    sys.exit(main())
