"""The sample jobs' handlers: five ways to write one."""

import os
import threading
from pathlib import Path
from typing import Final

from jobwheel import Executor, JobContext
from jobwheel.kernel.clock import Clock, SystemClock

_STEPS: Final = 4
_STEP_S: Final = 0.2
_FAILS_EACH: Final = 3


class Executions:
    """Notes each execution, so that a run that is executed twice shows. Safe to use from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, ctx: JobContext) -> None:
        """Append a line with the run's id; one write, so lines of threads do not mix."""
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(handle, f"{ctx.log_id}\n".encode())
        finally:
            os.close(handle)


def add_sample_handlers(executor: Executor, executions: Executions, clock: Clock | None = None) -> None:
    """Register the five handlers."""
    clock = clock or SystemClock()

    @executor.job("tick")
    def tick(ctx: JobContext) -> str:
        executions.note(ctx)
        ctx.log.info("tick of %s", ctx.planned_time.isoformat(timespec="seconds"))
        return "ticked"

    @executor.job("summarise")
    def summarise(ctx: JobContext) -> None:
        executions.note(ctx)
        words = ctx.parameter.split()
        ctx.log.info("the parameter has %d words", len(words))
        ctx.succeed(f"{len(words)} words, the longest is {max(words, key=len, default='none')}")

    @executor.job("tidy")
    def tidy(ctx: JobContext) -> str:
        executions.note(ctx)
        for step in range(1, _STEPS + 1):
            threading.Event().wait(_STEP_S)
            ctx.log.info("step %d of %d", step, _STEPS)
        return f"tidied in {_STEPS} steps"

    @executor.job("fetch")
    async def fetch(ctx: JobContext) -> str:
        executions.note(ctx)
        await clock.wait(_STEP_S)
        ctx.log.info("an async handler waits without holding a thread up")
        return "fetched"

    @executor.job("flaky")
    def flaky(ctx: JobContext) -> str:
        executions.note(ctx)
        if ctx.log_id % _FAILS_EACH == 0:
            raise RuntimeError(f"a failure on purpose: run {ctx.log_id} is one of every {_FAILS_EACH}")
        return "it worked this time"
