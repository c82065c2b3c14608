"""One thread for each job that has work, with a queue of its own."""

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Work
from jobwheel.executor.ledger import RunKey
from jobwheel.executor.run_log import RunLog
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import TriggerRequest

log = get_logger(__name__)

_MOST_WAIT_OPEN: Final = 256


@dataclass(slots=True, eq=False)
class AcceptedRun:
    """A run that this executor has said yes to. It owns its log; `settled` is set once, by who settles it."""

    request: TriggerRequest
    work: Work
    run_log: RunLog
    settled: bool = False

    @property
    def key(self) -> RunKey:
        return (self.request.log_id, self.request.log_date_time)


RunOne = Callable[[AcceptedRun, HandlerLoop], None]
"""Runs one job and settles its result; must not raise."""


class JobWorker:
    """The thread of one job. Its fields belong to the pool and are touched under the pool's lock alone."""

    __slots__ = ("queue", "queued", "running")

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[AcceptedRun | None] = queue.SimpleQueue()
        self.queued = 0
        self.running: AcceptedRun | None = None


class WorkerPool:
    """Runs of one job one after the other, of different jobs side by side.

    A worker is made with the first run of its job and ends after `idle_s` without one. Whether it ends or takes one
    more run is decided under one lock, so no run is ever put into a queue that nobody reads.
    """

    def __init__(self, run_one: RunOne, clock: Clock, queue_limit: int, idle_s: float) -> None:
        self._run_one = run_one
        self._clock = clock
        self._queue_limit = queue_limit
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._workers: dict[int, JobWorker] = {}
        self._queued = 0
        self._threads: set[threading.Thread] = set()

    def has_room(self, job_id: int) -> bool:
        """Whether the job's queue takes one more. It stays so as long as nobody else submits."""
        with self._lock:
            worker = self._workers.get(job_id)
            return worker is None or worker.queued < self._queue_limit

    def is_idle(self, job_id: int) -> bool:
        """Whether the job is neither running nor queued."""
        with self._lock:
            worker = self._workers.get(job_id)
            return worker is None or (worker.queued == 0 and worker.running is None)

    @property
    def running(self) -> int:
        """How many runs are under way."""
        with self._lock:
            return sum(worker.running is not None for worker in self._workers.values())

    @property
    def queued(self) -> int:
        """How many runs wait for their job's worker."""
        with self._lock:
            return self._queued

    @property
    def threads(self) -> int:
        """How many workers there are."""
        with self._lock:
            return len(self._workers)

    def submit(self, run: AcceptedRun) -> None:
        """Queue a run. The caller has seen that there is room, and does not submit after `close`.

        Raises:
            RuntimeError: the job needs a thread, and the system gives none.
        """
        job_id = run.request.job_id
        with self._lock:
            worker = self._workers.get(job_id)
            if worker is None:
                worker = JobWorker()
                self._start_thread(job_id, worker)
                self._workers[job_id] = worker
            worker.queued += 1
            waits = self._queued = self._queued + 1
        # Not every queued run may hold its file open: there can be many times more than a process may have open.
        if waits > _MOST_WAIT_OPEN:
            run.run_log.park()
        worker.queue.put(run)

    def _start_thread(self, job_id: int, worker: JobWorker) -> None:
        name = f"jobwheel-job-{job_id}"
        # A daemon: a handler that never ends must not keep the process from ending.
        thread = threading.Thread(target=self._work, args=(job_id, worker), name=name, daemon=True)
        thread.start()
        self._threads.add(thread)

    def close(self) -> None:
        """Let each worker end once its queue is empty. Nothing may be submitted any more."""
        with self._lock:
            for worker in self._workers.values():
                worker.queue.put(None)

    def join(self, timeout_s: float) -> bool:
        """Wait for the workers to end after `close`. False if some did not in time."""
        deadline = self._clock.monotonic() + timeout_s
        with self._lock:
            threads = list(self._threads)
        for thread in threads:
            thread.join(max(0.0, deadline - self._clock.monotonic()))
        return not any(thread.is_alive() for thread in threads)

    def abandon(self) -> tuple[list[AcceptedRun], list[AcceptedRun]]:
        """Take away what is queued; returns it, and what is still running and is left to itself."""
        queued: list[AcceptedRun] = []
        with self._lock:
            running = [worker.running for worker in self._workers.values() if worker.running is not None]
            for worker in self._workers.values():
                queued.extend(_emptied(worker))
                worker.queue.put(None)
            self._queued -= len(queued)
        return queued, running

    def _work(self, job_id: int, worker: JobWorker) -> None:
        loop = HandlerLoop(f"job {job_id}")
        try:
            while (run := self._next(job_id, worker)) is not None:
                self._run_safely(run, loop)
                with self._lock:
                    worker.running = None
                del run
        finally:
            with self._lock:
                if self._workers.get(job_id) is worker:
                    del self._workers[job_id]
            loop.close()
            with self._lock:
                self._threads.discard(threading.current_thread())

    def _run_safely(self, run: AcceptedRun, loop: HandlerLoop) -> None:
        try:
            self._run_one(run, loop)
        except Exception:
            # A fault of ours; the runs that wait behind this one must still run.
            log.exception("worker.run_not_settled", job_id=run.request.job_id, log_id=run.request.log_id)

    def _next(self, job_id: int, worker: JobWorker) -> AcceptedRun | None:
        """The worker's next run; None when it is to end, and then nobody can submit to it any more."""
        while True:
            try:
                run = worker.queue.get(timeout=self._idle_s)
            except queue.Empty:
                with self._lock:
                    if worker.queued == 0:
                        del self._workers[job_id]
                        return None
                continue
            if run is None:
                return None
            with self._lock:
                worker.queued -= 1
                self._queued -= 1
                worker.running = run
            return run


def _emptied(worker: JobWorker) -> list[AcceptedRun]:
    runs: list[AcceptedRun] = []
    while True:
        try:
            run = worker.queue.get_nowait()
        except queue.Empty:
            worker.queued -= len(runs)
            return runs
        if run is not None:
            runs.append(run)
