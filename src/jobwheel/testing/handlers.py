"""Running a handler as a worker does, without a server, an admin or a folder of its own."""

import asyncio
import contextlib
import logging
import re
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from jobwheel.executor import Executor
from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.context import current_run_log
from jobwheel.executor.errors import HandlerError, listed
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Work
from jobwheel.executor.log_capture import LogCapture
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import SUCCESS, Result, TriggerRequest

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

_LOG_ID: Final = 1
_STAMP: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (?=\[)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """How a run ended.

    Attributes:
        code: 200 for success, 500 for failure.
        message: what the admin would be told.
        log: the lines of the run's log without their times, such as `[INFO] greeting Ada`; the first and the last are
            the executor's own.
    """

    code: int
    message: str | None
    log: tuple[str, ...]

    @property
    def succeeded(self) -> bool:
        return self.code == SUCCESS


def run_handler(
    executor: Executor,
    name: str,
    parameter: str = "",
    *,
    shard: tuple[int, int] = (0, 1),
    attempt: int = 1,
    planned_time: datetime | None = None,
    job_id: int = 1,
) -> HandlerResult:
    """Run a handler, sync or async, to its end in the calling thread. The executor need not be started.

    The parts are those of a real run, so that an exception fails it and `logging` goes to its log, as it would. Not
    to be called inside an event loop: there, await `run_handler_async`.

    Args:
        executor: who has the handler.
        name: what it is registered as.
        parameter: the job's parameter.
        shard: which part of a broadcast, counted from 0, of how many.
        attempt: which try, counted from 1.
        planned_time: the instant that the schedule meant; now if left out. One without a zone is the host's.
        job_id: the job's id.

    Raises:
        HandlerError: there is no such handler, or an event loop runs in this thread.
    """
    work = _handler(executor, name)
    clock = SystemClock()
    now = clock.now()
    request = TriggerRequest(
        job_id=job_id,
        log_id=_LOG_ID,
        executor_handler=name,
        executor_params=parameter,
        log_date_time=now,
        broadcast_index=shard[0],
        broadcast_total=shard[1],
        scheduled_time=now if planned_time is None else round(planned_time.timestamp() * 1000),
        attempt=attempt,
    )
    with tempfile.TemporaryDirectory(prefix="jobwheel-testing-") as folder:
        run = AcceptedRun(request, work, RunLogFolder(Path(folder), clock).create(_LOG_ID, now))
        result = _carried_out(run)
        text = Path(run.run_log.path).read_text("utf-8")
    return HandlerResult(result.code, result.message, tuple(_STAMP.sub("", text).splitlines()))


def _in_a_thread(function: Callable[Parameters, Returned]) -> Callable[Parameters, Coroutine[Any, Any, Returned]]:
    async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        return await asyncio.to_thread(function, *args, **kwargs)

    run.__doc__ = "As `run_handler`, in a thread of its own, for tests that run in an event loop."
    return run


run_handler_async = _in_a_thread(run_handler)


def _handler(executor: Executor, name: str) -> Work:
    work = executor._handlers.get(name)  # noqa: SLF001 - one package; users have no need of it
    if work is None:
        raise HandlerError(name, f"is not registered; registered: {listed(executor.handlers)}")
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise HandlerError(name, "cannot be run inside an event loop: await run_handler_async(…) there")
    return work


def _carried_out(run: AcceptedRun) -> Result:
    results: list[Result] = []
    loop = HandlerLoop("test")
    try:
        with _captured_logging():
            JobRunner(results.append).run_one(run, loop)
    finally:
        loop.close()
    return results[0]


@contextlib.contextmanager
def _captured_logging() -> Iterator[None]:
    """`logging` goes to the run's log, from INFO on unless the tests have set a level of their own."""
    root = logging.getLogger()
    # An executor does this where nobody has set logging up; test runners have, for their own purposes.
    raised = root.level == logging.WARNING
    if raised:
        root.setLevel(logging.INFO)
    capture = LogCapture(current_run_log)
    capture.install()
    try:
        yield
    finally:
        capture.remove()
        if raised:
            root.setLevel(logging.WARNING)
