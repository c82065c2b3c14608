"""Handlers for child processes, where these can import them."""

# ruff: noqa: T201 - what becomes of what they print is tested

import asyncio
import ctypes
import dataclasses
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from typing import Any

from jobwheel import JobContext


@dataclasses.dataclass
class Numbers:
    first: int
    second: int = 2


def properties(ctx: JobContext) -> list[object]:
    return [
        ctx.job_id,
        ctx.log_id,
        ctx.parameter,
        ctx.shard_index,
        ctx.shard_total,
        ctx.attempt,
        ctx.trigger_type,
        ctx.planned_time.isoformat(),
        ctx.trigger_time.isoformat(),
        str(ctx.log_path),
        ctx.cancelled,
        JobContext.current().log_id,
    ]


def process_id() -> str:
    return str(os.getpid())


def echo(ctx: JobContext) -> str:
    return ctx.parameter


def add(ctx: JobContext, numbers: Numbers) -> int:
    return numbers.first + numbers.second


async def sums(ctx: JobContext) -> int:
    return sum(await asyncio.gather(*(asyncio.to_thread(lambda: JobContext.current().log_id) for _ in range(3))))


def talks(ctx: JobContext) -> str:
    ctx.log.info("first\nand second")
    print("third")
    logging.getLogger("some.library").warning("fourth")
    sys.stderr.write("fifth\n")
    ctx.log.debug("sixth")
    sys.stdout.buffer.write(b"seventh: \xff\n")
    sys.stdout.flush()
    thread = threading.Thread(target=lambda: ctx.log.error("eighth"))
    thread.start()
    thread.join()
    print("last, without an end", end="")
    return "done"


def writes_past_python() -> None:
    os.write(1, b"raw \xff\xfe\n")
    subprocess.run([sys.executable, "-c", "print('from a process')"], check=True)
    os.write(2, b"without an end")


def floods() -> str:
    for number in range(20_000):
        print(number, "x" * 80)
    os.write(1, b"y" * 300_000)
    return "done"


def raises(ctx: JobContext) -> None:
    print("before it", end="")
    raise LookupError(f"no {ctx.parameter}\nsecond line")


def leaves() -> None:
    raise SystemExit(3)


def ends(ctx: JobContext) -> None:
    """Ends its process, in the way that the parameter says."""
    ctx.log.info("last words")
    if ctx.parameter == "segfault":
        ctypes.string_at(0)
    elif ctx.parameter == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif ctx.parameter == "forked":
        # It holds all pipes open, and writes for as long as it lives.
        if os.fork() == 0:
            signal.alarm(60)
            while True:
                os.write(1, b"still here\n")
        os._exit(4)
    elif ctx.parameter == "closed":
        os.closerange(3, 100)
        threading.Event().wait(60)
    os._exit(3)


def outcome(ctx: JobContext) -> str:
    getattr(ctx, ctx.parameter)("said so")
    return "returned"


def endless(ctx: JobContext) -> None:
    if ctx.parameter == "only begin":
        return
    ctx.log.info("process %d", os.getpid())
    signal.alarm(60)
    while True:
        pass


def without_a_turn(ctx: JobContext) -> None:
    """Never lets another thread of Python run, and has a process of its own."""
    child = subprocess.Popen(["sleep", "60"])
    ctx.log.info("processes %d %d", os.getpid(), child.pid)
    # The end of it if nothing else is, for a test that fails.
    signal.alarm(60)
    re.match(r"(a+)+$", "a" * 60 + "b")


def family(ctx: JobContext) -> None:
    child = subprocess.Popen(["sleep", "60"])
    ctx.log.info("processes %d %d", os.getpid(), child.pid)
    child.wait()


def waits_for_stop(ctx: JobContext) -> str:
    ctx.log.info("waiting")
    stopped = ctx.wait_cancelled(8)
    return f"stopped: {stopped}"


def tells_progress(ctx: JobContext) -> None:
    for number in range(3):
        ctx.progress(number / 2, f"step {number}")


def prints_later(ctx: JobContext) -> str:
    """Has a thread that prints once its run is over, and once more through the run's logger."""

    def late() -> None:
        while not ended.wait(0.01):
            pass
        ctx.log.info("too late for the log")
        print("printed between runs")

    ended = threading.Event()
    threading.Thread(target=late).start()
    threading.Timer(0.1, ended.set).start()
    return "done"


class Counting:
    """Counts what is called in its process. The parameter of a run may make `init` fail the first time."""

    def __init__(self, *, fails: bool = False) -> None:
        self.calls: list[str] = []
        self.fails = fails

    async def init(self) -> None:
        self.calls.append("init")
        if self.fails:
            self.fails = False
            raise OSError("no connection")

    def execute(self) -> list[str]:
        self.calls.append("execute")
        return self.calls

    def destroy(self) -> None:
        print(f"destroyed after {len(self.calls)} calls")


class NeverLeaves:
    def execute(self) -> int:
        return os.getpid()

    def destroy(self) -> None:
        threading.Event().wait(60)


class Unpicklable:
    def __init__(self) -> None:
        self.lock: Any = threading.Lock()

    def execute(self) -> None: ...
