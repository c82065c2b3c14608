"""One run, from the queue to its result in the spool."""

import contextvars
import threading
from collections.abc import Callable

from jobwheel.executor.context import JobContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.tracebacks import last_line_of, traceback_of
from jobwheel.executor.workers import AcceptedRun
from jobwheel.wire.messages import FAILURE, SUCCESS, Result

MOST_MESSAGE_BYTES = 60_000
_CUT_MARK = " … (cut here)"

Settle = Callable[[Result], None]
"""Makes a result durable and marks its run as over."""


class JobRunner:
    """Runs handlers and settles what comes of it. Each run is settled once: here, or by `give_up`."""

    def __init__(self, settle: Settle) -> None:
        self._settle = settle
        self._lock = threading.Lock()

    def run_one(self, run: AcceptedRun, loop: HandlerLoop) -> None:
        """Run the handler in this thread. Whatever it does, a result comes of it, and nothing is raised."""
        run.run_log.write("INFO", _start_line(run))
        self._settle_run(run, _invoke(run, JobContext(run.request, run.run_log), loop))

    def give_up(self, run: AcceptedRun, reason: str) -> None:
        """Settle a run as failed that has not begun, or that is still running and will not be waited for."""
        self._settle_run(run, Outcome(FAILURE, reason))

    def _settle_run(self, run: AcceptedRun, outcome: Outcome) -> None:
        with self._lock:
            if run.settled:
                return
            run.settled = True
        # The log first: who sees the result, or that the run is over, must find the log complete.
        run.run_log.write("INFO" if outcome.code == SUCCESS else "ERROR", _end_line(outcome))
        run.run_log.close()
        request = run.request
        message = None if outcome.message is None else storable(outcome.message)
        self._settle(Result(request.log_id, request.log_date_time, outcome.code, message))


def _invoke(run: AcceptedRun, context: JobContext, loop: HandlerLoop) -> Outcome:
    try:
        # A context of its own, so that nothing a handler sets is seen by the next run of this thread.
        return contextvars.copy_context().run(_carry_out, run, context, loop)
    except BaseException as error:  # noqa: BLE001 - around user code: SystemExit and the like fail the run too
        run.run_log.write("ERROR", f"the handler raised an exception\n{traceback_of(error)}")
        return Outcome(FAILURE, last_line_of(error))


def _carry_out(run: AcceptedRun, context: JobContext, loop: HandlerLoop) -> Outcome:
    context.enter()
    return run.work.begin(context, loop).run()


def _start_line(run: AcceptedRun) -> str:
    request = run.request
    shard = f", shard {request.broadcast_index} of {request.broadcast_total}" if request.broadcast_total > 1 else ""
    what = f"job {request.job_id}, run {request.log_id}, handler {run.work.name}{shard}"
    return f"start: {what}, parameter: {request.executor_params or ''}"


def _end_line(outcome: Outcome) -> str:
    return f"end: code {outcome.code}" + ("" if outcome.message is None else f", message: {outcome.message}")


def storable(message: str) -> str:
    """The message as UTF-8 can carry it, cut to what an admin keeps."""
    data = message.encode(errors="backslashreplace")
    if len(data) <= MOST_MESSAGE_BYTES:
        return message if message.isascii() else data.decode()
    return data[: MOST_MESSAGE_BYTES - len(_CUT_MARK.encode())].decode(errors="ignore") + _CUT_MARK
