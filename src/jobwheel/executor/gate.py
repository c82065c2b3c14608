"""Says yes or no to runs."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.control import RunControl
from jobwheel.executor.disk_threads import DiskThreads
from jobwheel.executor.endings import DISCARD_LATER_EFFECT
from jobwheel.executor.errors import StorageError, listed
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.invocation import Work
from jobwheel.executor.ledger import RunLedger
from jobwheel.executor.run_log import RunLog, RunLogFolder
from jobwheel.executor.scripts import Scripts
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import Reason, TriggerRequest

log = get_logger(__name__)

Asked = TypeVar("Asked")
Told = TypeVar("Told")

BEAN = "BEAN"
SERIAL_EXECUTION = "SERIAL_EXECUTION"
DISCARD_LATER = "DISCARD_LATER"
COVER_EARLY = "COVER_EARLY"
_BLOCK_STRATEGIES = (SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY)
# To wake a thread costs as much as a short run: of several runs of a job in a batch it is woken once. Not for all of a
# long batch, whose first runs would wait for the last ones.
_MOST_UNWOKEN = 50


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a run is not taken."""

    message: str
    reason: Reason | None = None


class RunGate:
    """Accepts runs one at a time, so that two requests for one run cannot both be accepted. Any thread may ask.

    An accepted run has its log file before the caller hears of it: the file outlives the process and tells a later
    one that the run is known.
    """

    def __init__(
        self,
        instance: str,
        handlers: HandlerTable,
        scripts: Scripts,
        ledger: RunLedger,
        folder: RunLogFolder,
        pool: WorkerPool,
        control: RunControl,
    ) -> None:
        self._instance = instance
        self._handlers = handlers
        self._scripts = scripts
        self._ledger = ledger
        self._folder = folder
        self._pool = pool
        self._control = control
        self._lock = threading.Lock()
        self._stopping = False
        self._closed = False
        self._drained_by: set[str] = set()
        # Two threads, so that a single run need not wait for the whole of a batch.
        self._batches = DiskThreads("jobwheel-batches", 1)
        self._singles = DiskThreads("jobwheel-singles", 1)

    def refuse(self) -> None:
        """Accept nothing any more but what is being accepted at this moment. Waits for nothing."""
        self._stopping = True

    def close(self) -> None:
        """Accept nothing any more. When this returns, everything accepted is in its queue."""
        with self._lock:
            self._stopping = self._closed = True
        self._batches.close()
        self._singles.close()

    def drain(self, admin: str, *, draining: bool) -> bool:
        """Take no new runs as long as an admin wishes so; True if that is news. What was accepted goes on.

        Call from the loop's own thread. One that is being accepted at this moment may still be.
        """
        # Without the lock, which who makes a log has for as long as the disk takes: this is asked at each beat.
        before = bool(self._drained_by)
        (self._drained_by.add if draining else self._drained_by.discard)(admin)
        return before != bool(self._drained_by)

    @property
    def draining(self) -> bool:
        """Whether new runs are refused, for now or for good."""
        return self._stopping or bool(self._drained_by)

    def submit(self, request: TriggerRequest, *, wake: bool = True) -> Refusal | None:
        """Queue the run; None means accepted. `wake` as `WorkerPool.submit` has it."""
        with self._lock:
            return self._known(request) or self._unwilling(request) or self._accept(request, wake=wake)

    async def submit_one(self, request: TriggerRequest) -> Refusal | None:
        """Queue a run as `submit` does, apart from the event loop: the disk may be slow, or hang."""
        return await self._apart(self._singles, self.submit, request)

    async def submit_all(self, requests: Sequence[TriggerRequest]) -> list[Refusal | None]:
        """Queue runs in their order, apart from the event loop: making many files takes a while.

        The lock is taken for each anew, so that single runs need not wait for all of them. Never raises: whoever asks
        must hear of those that were accepted.
        """
        return await self._apart(self._batches, self._submit_each, requests)

    async def _apart(self, threads: DiskThreads, submit: Callable[[Asked], Told], asked: Asked) -> Told:
        if not self._closed:
            try:
                return await threads.do(submit, asked)
            except RuntimeError:
                # It may have been closed just now: whoever asks for an application that this is mounted in has a loop
                # of his own, and must hear who stops, not that something failed.
                if not self._closed:
                    raise
        # All but those that are known are refused, for which there is nothing to make.
        return submit(asked)

    def _submit_each(self, requests: Sequence[TriggerRequest]) -> list[Refusal | None]:
        answers: list[Refusal | None] = []
        for begin in range(0, len(requests), _MOST_UNWOKEN):
            try:
                answers += [self._submit_safely(request) for request in requests[begin : begin + _MOST_UNWOKEN]]
            finally:
                self._pool.wake()
        return answers

    def _submit_safely(self, request: TriggerRequest) -> Refusal | None:
        try:
            return self.submit(request, wake=False)
        except Exception as error:
            # A fault of ours; the runs before this one are accepted, and those behind it are judged as well.
            log.exception("gate.run_not_judged", job_id=request.job_id, log_id=request.log_id)
            return Refusal(f"the run failed here: {type(error).__name__}; the log has the details")

    def _known(self, request: TriggerRequest) -> Refusal | None:
        """The order matters: a run that is known must never look like one that did not begin."""
        key = (request.log_id, request.log_date_time)
        resend = request.resend is True
        if self._ledger.state(key) or (resend and self._folder.find(*key)):
            return Refusal(f"run {request.log_id} is known here already, and is not run again", Reason.REPEATED)
        if resend and request.instance != self._instance:
            sent_to = "no process" if request.instance is msgspec.UNSET else f"process {request.instance}"
            return Refusal(
                f"run {request.log_id} was sent to {sent_to}, but this is process {self._instance}: nothing was run",
                Reason.INSTANCE,
            )
        return None

    def _unwilling(self, request: TriggerRequest) -> Refusal | None:
        if self._stopping:
            return Refusal("this executor is stopping and takes no more runs", Reason.STOPPING)
        if self._drained_by:
            return Refusal("this executor is being drained and takes no runs for now", Reason.STOPPING)
        strategy = request.executor_block_strategy
        if strategy == DISCARD_LATER and not self._pool.is_idle(request.job_id):
            return Refusal(DISCARD_LATER_EFFECT, Reason.BLOCKED)
        if strategy != COVER_EARLY and not self._pool.has_room(request.job_id):
            return Refusal(f"the queue of job {request.job_id} is full", Reason.FULL)
        return None

    def _accept(self, request: TriggerRequest, *, wake: bool) -> Refusal | None:
        work = self._work(request)
        if isinstance(work, Refusal):
            return work
        try:
            run_log = self._folder.create(request.log_id, request.log_date_time)
        except StorageError as error:
            return Refusal(f"the run's log cannot be made: {error.message}")
        # What is to be run is the work's matter, and a script is long.
        run = AcceptedRun(msgspec.structs.replace(request, glue_source=None), work, run_log)
        try:
            self._queue(run, wake=wake)
        except BaseException as error:
            # Refused, whatever it was: nothing here may look as if the run was known.
            self._ledger.release(run.key)
            run_log.discard()
            if not isinstance(error, RuntimeError):
                raise
            return Refusal(f"the run cannot begin: {error}")
        return None

    def _queue(self, run: AcceptedRun, *, wake: bool) -> None:
        self._make_way(run.request, run.run_log)
        self._ledger.accept(run.key)
        self._pool.submit(run, wake=wake)

    def _make_way(self, request: TriggerRequest, run_log: RunLog) -> None:
        strategy = request.executor_block_strategy or SERIAL_EXECUTION
        if strategy == COVER_EARLY:
            self._control.cover(request.job_id)
        elif strategy not in _BLOCK_STRATEGIES:
            # As executors of the reference do: a name that is new to them does not keep a job from running.
            known = listed(_BLOCK_STRATEGIES)
            run_log.write("WARNING", f"block strategy {strategy} is not known here ({known}): {SERIAL_EXECUTION} it is")

    def _work(self, request: TriggerRequest) -> Work | Refusal:
        """What the run is to carry out: a handler, or the script that it brings."""
        if request.glue_type != BEAN:
            script = self._scripts.work(request)
            return Refusal(script) if isinstance(script, str) else script
        name = request.executor_handler or ""
        handler = self._handlers.get(name)
        if handler is None:
            known = listed(self._handlers.names)
            return Refusal(f"job handler {name!r} is not registered here; registered: {known}", Reason.UNKNOWN_HANDLER)
        return handler
