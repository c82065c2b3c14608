"""Says yes or no to runs."""

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec

from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.control import RunControl
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

BEAN = "BEAN"
SERIAL_EXECUTION = "SERIAL_EXECUTION"
DISCARD_LATER = "DISCARD_LATER"
COVER_EARLY = "COVER_EARLY"
_BLOCK_STRATEGIES = (SERIAL_EXECUTION, DISCARD_LATER, COVER_EARLY)


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
        self._closed = False
        self._draining = False
        # A thread of its own: those of the loop may all be busy, with long logs or with what the application does.
        self._batches = ThreadPoolExecutor(1, "jobwheel-batches")

    def close(self) -> None:
        """Accept nothing any more. When this returns, everything accepted is in its queue."""
        with self._lock:
            self._closed = True
        self._batches.shutdown(wait=False)

    def drain(self, *, draining: bool) -> bool:
        """Take no new runs as long as this is so; True if that is news. What was accepted goes on."""
        with self._lock:
            changed, self._draining = self._draining != draining, draining
            return changed

    @property
    def draining(self) -> bool:
        """Whether new runs are refused, for now or for good."""
        return self._closed or self._draining

    def submit(self, request: TriggerRequest) -> Refusal | None:
        """Queue the run; None means accepted."""
        with self._lock:
            return self._known(request) or self._unwilling(request) or self._accept(request)

    async def submit_all(self, requests: Sequence[TriggerRequest]) -> list[Refusal | None]:
        """Queue runs in their order, apart from the event loop: making many files takes a while.

        The lock is taken for each anew, so that single runs need not wait for all of them. Never raises: whoever asks
        must hear of those that were accepted.
        """
        if self._closed:
            # All but those that are known are refused, for which there is nothing to make.
            return self._submit_each(requests)
        return await asyncio.get_running_loop().run_in_executor(self._batches, self._submit_each, requests)

    def _submit_each(self, requests: Sequence[TriggerRequest]) -> list[Refusal | None]:
        return [self._submit_safely(request) for request in requests]

    def _submit_safely(self, request: TriggerRequest) -> Refusal | None:
        try:
            return self.submit(request)
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
        if self._closed:
            return Refusal("this executor is stopping and takes no more runs", Reason.STOPPING)
        if self._draining:
            return Refusal("this executor is being drained and takes no runs for now", Reason.STOPPING)
        strategy = request.executor_block_strategy
        if strategy == DISCARD_LATER and not self._pool.is_idle(request.job_id):
            return Refusal(DISCARD_LATER_EFFECT, Reason.BLOCKED)
        if strategy != COVER_EARLY and not self._pool.has_room(request.job_id):
            return Refusal(f"the queue of job {request.job_id} is full", Reason.FULL)
        return None

    def _accept(self, request: TriggerRequest) -> Refusal | None:
        work = self._work(request)
        if isinstance(work, Refusal):
            return work
        try:
            run_log = self._folder.create(request.log_id, request.log_date_time)
        except StorageError as error:
            return Refusal(f"the run's log cannot be made: {error.message}")
        # What is to be run is the work's matter, and a script is long.
        run = AcceptedRun(msgspec.structs.replace(request, glue_source=None), work, run_log)
        self._make_way(request, run_log)
        self._ledger.accept(run.key)
        try:
            self._pool.submit(run)
        except RuntimeError as error:
            self._ledger.release(run.key)
            run_log.discard()
            return Refusal(f"the run cannot begin: {error}")
        return None

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
