"""The processes of a measurement: what they use, how they end, and the ports they listen on."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_SCHEDULED: Final = 2


def cpu_s(pid: int) -> float:
    """CPU seconds used so far, in user and system mode, by a process and its living children."""
    # The clock of another process (clock_getcpuclockid(3), which Python has not): `/proc` counts in steps of 10 ms.
    return sum(time.clock_gettime((~each << 3) | _SCHEDULED) for each in (pid, *children(pid)))


def children(pid: int) -> list[int]:
    """The processes that a process has started with its first thread, those that live."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def family_cpu_s(pid: int) -> float:
    """The same for a server and its children, those that have ended included."""
    own = _stat(pid)
    return (sum(own[11:15]) + sum(sum(_stat(child)[11:13]) for child in children(pid))) / _TICKS


def _stat(pid: int) -> list[int]:
    """What `/proc/PID/stat` tells after the name and the state; all numbers are 0 if the process has just ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return [0] * 50
    return [0, *map(int, fields[1:])]


def stop(process: "subprocess.Popen[bytes]") -> None:
    """End a process by SIGTERM, and by SIGKILL a minute later."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int) -> None:
    """Return once somebody listens; a TimeoutError after a minute."""

    def listens() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, f"somebody listens on port {port}")


def wait_until(holds: Callable[[], bool], what: str, *, every_s: float = 0.05) -> None:
    """Return once it holds; a TimeoutError that says what, after a minute."""
    deadline_s = time.perf_counter() + 60
    while not holds():
        if time.perf_counter() > deadline_s:
            raise TimeoutError(f"waited in vain for a minute: {what}")
        time.sleep(every_s)


def resident_mib(pid: int) -> float:
    """Resident memory of a process and its living children; what they share counts for each."""
    return sum(_resident_kib(each) for each in (pid, *children(pid))) / 1024


def _resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(resident.split()[1])
