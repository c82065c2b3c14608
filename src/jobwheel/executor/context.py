"""What a handler knows of its run."""

import contextvars
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from jobwheel.executor.errors import NotInJobError
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.log_capture import RunLogger
from jobwheel.executor.run_log import LogSink
from jobwheel.wire.messages import FAILURE, SUCCESS, TIMED_OUT, TriggerRequest

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")

ReportProgress = Callable[[int, float, str], None]
"""Takes a run's id, how far it is (0 to 1), and words; from any thread, and never waits."""


def no_progress(_log_id: int, _fraction: float, _text: str) -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class ParentRun:
    """The run whose success caused this one."""

    log_id: int
    message: str | None


_current: contextvars.ContextVar["JobContext"] = contextvars.ContextVar("jobwheel_job_context")


class JobContext:
    """One run, as its handler sees it. Each run has a context of its own; it may be used from any thread."""

    __slots__ = ("_cancelled", "_lock", "_log", "_outcome", "_report_progress", "_request", "_run_log", "_waited_for")

    def __init__(
        self, request: TriggerRequest, run_log: LogSink, report_progress: ReportProgress = no_progress
    ) -> None:
        self._request = request
        self._run_log = run_log
        self._report_progress = report_progress
        self._cancelled = False
        # Few handlers wait for it, and an event costs as much as a tenth of a short run.
        self._waited_for: threading.Event | None = None
        self._lock = threading.Lock()
        self._log: RunLogger | None = None
        self._outcome: Outcome | None = None

    @staticmethod
    def current() -> "JobContext":
        """The context of the run that calls this, from anywhere below its handler.

        It is known in the handler's tasks, in `asyncio.to_thread`, and in threads that run what `bind` gave.

        Raises:
            NotInJobError: no run is under way here.
        """
        try:
            return _current.get()
        except LookupError:
            raise NotInJobError from None

    @property
    def job_id(self) -> int:
        return self._request.job_id

    @property
    def log_id(self) -> int:
        """The id of the run."""
        return self._request.log_id

    @property
    def parameter(self) -> str:
        """The job's parameter, empty if there is none."""
        return self._request.executor_params or ""

    @property
    def shard_index(self) -> int:
        """Which part of a broadcast this run is, counted from 0."""
        return self._request.broadcast_index

    @property
    def shard_total(self) -> int:
        """How many parts the broadcast has; 1 when there is no broadcast."""
        return max(1, self._request.broadcast_total)

    @property
    def planned_time(self) -> datetime:
        """The instant that the schedule meant, in UTC; the same over retries.

        Admins of other make do not send it: then this is `trigger_time`.
        """
        planned = self._request.scheduled_time
        return _instant(self._request.log_date_time if planned is msgspec.UNSET else planned)

    @property
    def trigger_time(self) -> datetime:
        """The moment of the run's cause, in UTC."""
        return _instant(self._request.log_date_time)

    @property
    def trigger_type(self) -> str | None:
        """Why the run is made: CRON, MANUAL, … None under an admin of other make."""
        return None if self._request.trigger_type is msgspec.UNSET else self._request.trigger_type

    @property
    def attempt(self) -> int:
        """Which try this is, counted from 1. Always 1 under an admin of other make."""
        return 1 if self._request.attempt is msgspec.UNSET else self._request.attempt

    @property
    def parent(self) -> ParentRun | None:
        """The run whose success caused this one; None if it has another cause, or under an admin of other make."""
        parent = self._request.parent
        return None if parent is msgspec.UNSET else ParentRun(parent.log_id, parent.handle_msg)

    @property
    def cancelled(self) -> bool:
        """Whether the run is to end: it was killed, covered or timed out, or the executor stops.

        A handler that looks at it and returns has time to tidy up. Whatever it returns then, the run has not succeeded.
        """
        return self._cancelled

    def wait_cancelled(self, timeout_s: float | None = None) -> bool:
        """Wait until the run is to end, `timeout_s` at most: True means that it is. In a thread, not in a coroutine."""
        with self._lock:
            if self._cancelled:
                return True
            event = self._waited_for = self._waited_for or threading.Event()
        return event.wait(timeout_s)

    def cancel(self) -> None:
        """Let the handler know that the run is to end. For the executor; a handler just returns."""
        with self._lock:
            self._cancelled = True
            if self._waited_for is not None:
                self._waited_for.set()

    def progress(self, fraction: float, text: str = "") -> None:
        """Tell the admin how far the run is, for the people who look at it. Never waits.

        At most one message a second is sent, the latest; none if the admin is away or does not want them.

        Args:
            fraction: from 0 to 1; what is beyond counts as 0 or 1.
            text: a few words; they are cut after 1,000 characters.
        """
        self._report_progress(self.log_id, min(1.0, max(0.0, float(fraction))), str(text))

    def bind(self, function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
        """The function, as one that knows this run wherever it is called: in a thread or a pool that a handler uses.

        ```python
        with ThreadPoolExecutor() as pool:
            list(pool.map(ctx.bind(convert), files))
        ```
        """
        here = contextvars.copy_context()
        here.run(self.enter)

        def bound(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
            # A copy for each call: one context cannot be entered by two threads at once.
            return here.copy().run(function, *args, **kwargs)

        return bound

    @property
    def log(self) -> logging.Logger:
        """A logger that writes to this run's log, whatever thread uses it."""
        if self._log is None:
            self._log = RunLogger(self._run_log)
        return self._log

    @property
    def log_path(self) -> Path:
        """The file of the run's log."""
        return Path(self._run_log.path)

    @property
    def request(self) -> TriggerRequest:
        """What the admin sent."""
        return self._request

    @property
    def run_log(self) -> LogSink:
        """Where `logging` inside the run goes."""
        return self._run_log

    @property
    def outcome(self) -> Outcome | None:
        """What `succeed`, `fail` or `time_out` set, the last of them."""
        return self._outcome

    def succeed(self, message: str | None = None) -> None:
        """The run will have succeeded when the handler returns, whatever it returns. An exception still fails it."""
        self._outcome = Outcome(SUCCESS, None if message is None else str(message))

    def fail(self, message: str) -> None:
        """The run will have failed when the handler returns, whatever it returns."""
        self._outcome = Outcome(FAILURE, str(message))

    def time_out(self, message: str) -> None:
        """The run will have timed out (code 502) when the handler returns, whatever it returns."""
        self._outcome = Outcome(TIMED_OUT, str(message))

    def enter(self) -> None:
        """Make this the current context. The caller runs inside a `contextvars.Context` made for the run."""
        _current.set(self)


def current_run_log() -> LogSink | None:
    """The log of the run that calls this; None outside a run."""
    context = _current.get(None)
    return None if context is None else context.run_log


def _instant(epoch_ms: int) -> datetime:
    return datetime.fromtimestamp(epoch_ms / 1000, UTC)
