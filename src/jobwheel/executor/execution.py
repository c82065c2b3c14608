"""One run, from the queue to its result in the spool."""

import contextvars
import itertools
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Final

from jobwheel.executor import endings
from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.context import JobContext, ReportProgress, no_progress
from jobwheel.executor.deadlines import Deadlines
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Invocation, Outcome
from jobwheel.executor.tracebacks import last_line_of, leads_to_user_code, traceback_of
from jobwheel.kernel.clock import Clock, SystemClock
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import FAILURE, SUCCESS, Result

log = get_logger(__name__)

MOST_MESSAGE_BYTES = 60_000
_CUT_MARK = " … (cut here)"
# Of the grace time, how much a run has to end by itself; the rest is for what force brings about.
_BY_ITSELF: Final = 0.8

Settle = Callable[[Result], None]
"""Makes a result durable and marks its run as over."""


def _safely(end: Callable[[], object]) -> None:
    """Whoever ends a run has others to end, and a result to report, even if this goes wrong."""
    try:
        end()
    except Exception:
        log.exception("run.cannot_be_ended")


def _nobody(_: AcceptedRun) -> None:
    pass


class JobRunner:
    """Runs handlers and settles what comes of it. Each run is settled once, whoever does it.

    A run that is to end is asked to; after most of the grace time it is ended by force; when the grace time is over it
    is settled even if its thread goes on, and `on_left_alone` is told.

    Args:
        settle: takes each result.
        clock: what time-outs and grace times are measured by.
        grace_s: how long a run that is to end may take.
        report_progress: takes what handlers say of their progress.
    """

    def __init__(
        self,
        settle: Settle,
        clock: Clock | None = None,
        grace_s: float = 2.0,
        report_progress: ReportProgress = no_progress,
    ) -> None:
        self._settle = settle
        self._grace_s = grace_s
        self._report_progress = report_progress
        self._lock = threading.Lock()
        self._deadlines = Deadlines(clock or SystemClock())
        self.on_left_alone: Callable[[AcceptedRun], None] = _nobody
        """Called with a run that was settled though it may still be in its handler."""

    def close(self) -> None:
        """No run is timed out or ended by force any more."""
        self._deadlines.close()

    def run_one(self, run: AcceptedRun, loop: HandlerLoop) -> None:
        """Run the handler in this thread. Whatever it does, a result comes of it, and nothing is raised."""
        run.run_log.write("INFO", _start_line(run))
        context = JobContext(run.request, run.run_log, self._report_progress)
        self._settle_run(run, self._invoke(run, context, loop))
        self._deadlines.clear(run)

    def give_up(self, run: AcceptedRun, outcome: Outcome) -> None:
        """Settle a run that has not begun."""
        self._settle_run(run, outcome)

    def end(self, run: AcceptedRun, ending: Outcome, grace_s: float | None = None) -> None:
        """Have a run under way end, and end with `ending`, whatever its handler does. Returns at once.

        Nothing if it is over, or is ending already. From any thread.

        Args:
            run: the run.
            ending: what is reported of it.
            grace_s: how long it may take, if not the usual time.
        """
        with self._lock:
            if run.settled or run.ending is not None:
                return
            run.ending = ending
            invocation = run.invocation
        grace_s = self._grace_s if grace_s is None else grace_s
        run.run_log.write("WARNING", f"asked to end: {ending.message}")
        force = partial(self._force, run, grace_s * (1 - _BY_ITSELF))
        _safely(partial(self._deadlines.set, run, grace_s * _BY_ITSELF, force))
        if invocation is not None:
            _safely(invocation.stop)

    def end_now(self, run: AcceptedRun, ending: Outcome) -> None:
        """Settle a run under way at once, and end it by force without waiting for it."""
        with self._lock:
            run.ending = run.ending or ending
        self._leave_alone(run)

    def _force(self, run: AcceptedRun, left_s: float) -> None:
        with self._lock:
            if run.settled:
                return
            run.forced, invocation = True, run.invocation
        self._deadlines.set(run, left_s, partial(self._leave_alone, run))
        if invocation is not None:
            run.run_log.write("WARNING", "did not end by itself: ended by force")
            _safely(invocation.kill)

    def _leave_alone(self, run: AcceptedRun) -> None:
        with self._lock:
            if run.settled or run.ending is None:
                return
            run.forced = True
            ending, invocation, thread_id = run.ending, run.invocation, run.thread_id
        run.run_log.write("ERROR", _where(thread_id))
        self._settle_run(run, ending)
        # Once more: a handler that swallowed the first may not swallow the second.
        if invocation is not None:
            _safely(invocation.kill)
        self.on_left_alone(run)

    def _invoke(self, run: AcceptedRun, context: JobContext, loop: HandlerLoop) -> Outcome:
        try:
            # A context of its own, so that nothing a handler sets is seen by the next run of this thread.
            return contextvars.copy_context().run(self._carry_out, run, context, loop)
        except BaseException as error:  # noqa: BLE001 - around user code: SystemExit and the like fail the run too
            what = "the handler raised an exception" if run.ending is None else "the handler was here"
            run.run_log.write("ERROR", f"{what}\n{traceback_of(error)}")
            return run.ending or Outcome(FAILURE, last_line_of(error))

    def _carry_out(self, run: AcceptedRun, context: JobContext, loop: HandlerLoop) -> Outcome:
        context.enter()
        invocation = run.work.begin(context, loop)
        if not self._begin(run, invocation):
            return run.ending or endings.STOPPED_IN_QUEUE
        return invocation.run()

    def _begin(self, run: AcceptedRun, invocation: Invocation) -> bool:
        """Whether the run may begin. From then on whoever ends it finds the invocation."""
        with self._lock:
            if run.ending is not None or run.settled:
                return False
            run.invocation, run.thread_id = invocation, threading.get_ident()
            timeout_s = run.request.executor_timeout
            if timeout_s > 0:
                # Under the lock: it must not replace the deadline of somebody who ends the run.
                self._deadlines.set(run, timeout_s, partial(self.end, run, endings.timed_out(timeout_s)))
            return True

    def _settle_run(self, run: AcceptedRun, outcome: Outcome) -> None:
        with self._lock:
            if run.settled:
                return
            run.settled = True
            ending = run.ending
        if ending is not None and outcome is not ending:
            run.run_log.write("INFO", f"the handler ended with code {outcome.code}" + _message_of(outcome))
            outcome = ending
        # The log first: who sees the result, or that the run is over, must find the log complete.
        run.run_log.write("INFO" if outcome.code == SUCCESS else "ERROR", _end_line(outcome))
        run.run_log.close()
        request = run.request
        message = None if outcome.message is None else storable(outcome.message)
        self._settle(Result(request.log_id, request.log_date_time, outcome.code, message))


def _start_line(run: AcceptedRun) -> str:
    request = run.request
    shard = f", shard {request.broadcast_index} of {request.broadcast_total}" if request.broadcast_total > 1 else ""
    what = f"job {request.job_id}, run {request.log_id}, handler {run.work.name}{shard}"
    return f"start: {what}, parameter: {request.executor_params or ''}"


def _end_line(outcome: Outcome) -> str:
    return f"end: code {outcome.code}" + _message_of(outcome)


def _message_of(outcome: Outcome) -> str:
    return "" if outcome.message is None else f", message: {outcome.message}"


def _where(thread_id: int | None) -> str:
    """Where a run hangs that nothing could end."""
    frame = None if thread_id is None else sys._current_frames().get(thread_id)  # noqa: SLF001 - documented, named so
    text = "could not be ended: its thread is left to itself, and the job goes on without it"
    if frame is None:
        return text
    stack = traceback.extract_stack(frame)
    ours = max((number for number, each in enumerate(stack) if each.filename == __file__), default=-1)
    theirs = list(itertools.dropwhile(lambda each: leads_to_user_code(each.filename), stack[ours + 1 :]))
    return f"{text}; it is here\n{''.join(traceback.format_list(theirs or stack)).rstrip()}"


def storable(message: str) -> str:
    """The message as UTF-8 can carry it, cut to what an admin keeps."""
    data = message.encode(errors="backslashreplace")
    if len(data) <= MOST_MESSAGE_BYTES:
        return message if message.isascii() else data.decode()
    return data[: MOST_MESSAGE_BYTES - len(_CUT_MARK.encode())].decode(errors="ignore") + _CUT_MARK
