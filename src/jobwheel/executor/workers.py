"""One thread for each job that has work, with a queue of its own."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from jobwheel.executor.accepted_run import AcceptedRun, RunsOfJob
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

_MOST_WAIT_OPEN: Final = 256


RunOne = Callable[[AcceptedRun, HandlerLoop], None]
"""Runs one job and settles its result; must not raise."""


class JobWorker:
    """The thread of one job. Its fields belong to the pool and are touched under the pool's lock alone.

    It waits at `wake` only while it has nothing to do, and `waits` says so: to wake a thread costs more than a short
    run. Sometimes it is woken for nothing.
    """

    __slots__ = ("closing", "left_alone", "queue", "running", "thread", "waits", "wake")

    def __init__(self, runs: Iterable[AcceptedRun] = (), *, closing: bool = False) -> None:
        self.queue = deque(runs)
        self.wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.waits = False
        self.running: AcceptedRun | None = None
        self.closing = closing
        self.left_alone = False
        self.thread: threading.Thread | None = None


class WorkerPool:
    """Runs of one job one after the other, of different jobs side by side.

    A worker is made with the first run of its job and ends after `idle_s` without one. Whether it ends or takes one
    more run is decided under one lock, so no run is ever put into a queue that nobody reads.

    The thread of a run that nothing can end is left to itself: its job gets a new one. Such a thread is counted as
    abandoned until it ends.
    """

    def __init__(self, run_one: RunOne, clock: Clock, queue_limit: int, idle_s: float) -> None:
        self._run_one = run_one
        self._clock = clock
        self._queue_limit = queue_limit
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._workers: dict[int, JobWorker] = {}
        self._queued = 0
        self._unwoken: set[JobWorker] = set()
        self._threads: set[threading.Thread] = set()
        self._abandoned: set[threading.Thread] = set()

    def has_room(self, job_id: int) -> bool:
        """Whether the job's queue takes one more. It stays so as long as nobody else submits."""
        with self._lock:
            worker = self._workers.get(job_id)
            return worker is None or len(worker.queue) < self._queue_limit

    def is_idle(self, job_id: int) -> bool:
        """Whether the job is neither running nor queued. A run that is settled runs no more."""
        with self._lock:
            worker = self._workers.get(job_id)
            # An admin may have its result, and send the next one, before the worker's thread gets any further.
            return worker is None or not (worker.queue or (worker.running and not worker.running.settled))

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

    @property
    def abandoned(self) -> int:
        """How many threads were left to themselves and have not ended yet."""
        with self._lock:
            return len(self._abandoned)

    def runs_under_way(self) -> list[AcceptedRun]:
        """The runs that are in their handlers."""
        with self._lock:
            return [worker.running for worker in self._workers.values() if worker.running is not None]

    def submit(self, run: AcceptedRun, *, wake: bool = True) -> None:
        """Queue a run. The caller sees that there is room, submits nothing after `close`, and calls `wake` if not here.

        Raises:
            RuntimeError: the job needs a thread, and the system gives none.
        """
        job_id = run.request.job_id
        with self._lock:
            worker = self._workers.get(job_id)
            if worker is None:
                worker = self._start_worker(job_id, JobWorker())
            worker.queue.append(run)
            waits = self._queued = self._queued + 1
            # Not every queued run may hold its file open: there can be many times more than a process may have open.
            # Under the lock: the worker must not have taken it meanwhile.
            if waits > _MOST_WAIT_OPEN:
                run.run_log.park()
            if wake:
                _wake(worker)
            elif worker.waits:
                self._unwoken.add(worker)

    def wake(self) -> None:
        """Have the workers look for which something was submitted without waking them."""
        with self._lock:
            while self._unwoken:
                _wake(self._unwoken.pop())

    def _start_worker(self, job_id: int, worker: JobWorker) -> JobWorker:
        name = f"jobwheel-job-{job_id}"
        # A daemon: a handler that never ends must not keep the process from ending.
        thread = worker.thread = threading.Thread(target=self._work, args=(job_id, worker), name=name, daemon=True)
        thread.start()
        self._threads.add(thread)
        self._workers[job_id] = worker
        return worker

    def take_away(self, job_id: int) -> RunsOfJob:
        """Empty the job's queue; returns what was in it, and the run that is under way and goes on."""
        with self._lock:
            worker = self._workers.get(job_id)
            if worker is None:
                return RunsOfJob(None, [])
            return RunsOfJob(worker.running, self._emptied(worker))

    def take_away_run(self, log_id: int) -> RunsOfJob:
        """The same for one run, by its id: it is under way, or it waited and is taken out of its queue, or neither."""
        with self._lock:
            for worker in self._workers.values():
                if worker.running is not None and worker.running.request.log_id == log_id:
                    return RunsOfJob(worker.running, [])
                for run in worker.queue:
                    if run.request.log_id == log_id:
                        worker.queue.remove(run)
                        self._queued -= 1
                        return RunsOfJob(None, [run])
        return RunsOfJob(None, [])

    def take_away_queued(self) -> list[AcceptedRun]:
        """Empty every queue; returns what was in them."""
        with self._lock:
            return [run for worker in self._workers.values() for run in self._emptied(worker)]

    def _emptied(self, worker: JobWorker) -> list[AcceptedRun]:
        runs = list(worker.queue)
        worker.queue.clear()
        self._queued -= len(runs)
        return runs

    def leave_alone(self, run: AcceptedRun) -> list[AcceptedRun]:
        """Go on without the thread of this run, which does not end. Nothing if it has ended by now.

        The runs that wait behind it get a new thread. Returned are those that get none, since the system gives none.
        """
        job_id = run.request.job_id
        with self._changed:
            worker = self._workers.get(job_id)
            if worker is None or worker.running is not run or worker.thread is None:
                return []
            left = [] if self._hand_over(job_id, worker) else self._emptied(worker)
            self._set_apart(worker.thread)
            worker.left_alone, abandoned = True, len(self._abandoned)
            # So that it looks at once, should it ever come back.
            worker.wake.put(None)
        log.error("worker.abandoned", job_id=job_id, log_id=run.request.log_id, abandoned=abandoned)
        return left

    def _set_apart(self, thread: threading.Thread) -> None:
        self._threads.discard(thread)
        self._abandoned.add(thread)
        self._changed.notify_all()

    def _hand_over(self, job_id: int, worker: JobWorker) -> bool:
        """Have the job go on without this worker. False: its queue needs another thread, and the system gives none."""
        del self._workers[job_id]
        if not worker.queue:
            return True
        heir = JobWorker(worker.queue, closing=worker.closing)
        try:
            self._start_worker(job_id, heir)
        except RuntimeError:
            return False
        worker.queue.clear()
        return True

    def close(self) -> None:
        """Let each worker end once its queue is empty. Nothing may be submitted any more."""
        with self._lock:
            for worker in self._workers.values():
                worker.closing = True
                _wake(worker)

    def join(self, timeout_s: float) -> bool:
        """Wait for the workers to end after `close`, those left to themselves aside. False if some did not in time."""
        deadline = self._clock.monotonic() + timeout_s
        with self._changed:
            threads = list(self._threads)
            ended = self._changed.wait_for(lambda: not self._threads, max(0.0, timeout_s))
            threads = [thread for thread in threads if thread not in self._abandoned]
        if ended:
            # They have nothing to do any more but to end.
            for thread in threads:
                thread.join(max(0.0, deadline - self._clock.monotonic()))
        return ended

    def _work(self, job_id: int, worker: JobWorker) -> None:
        loop = HandlerLoop(f"job {job_id}")
        try:
            while (run := self._next(job_id, worker)) is not None:
                self._run_safely(run, loop)
                with self._lock:
                    worker.running = None
                    if run.forced and self._workers.get(job_id) is worker:
                        # It may have been hit anywhere, in its event loop too: the next run gets a clean thread.
                        if self._hand_over(job_id, worker):
                            # Nobody need wait for it: what a handler left behind may hold its loop up.
                            self._set_apart(threading.current_thread())
                            return
                        self._workers[job_id] = worker
                del run
        finally:
            try:
                loop.close()
            finally:
                self._end(job_id, worker)

    def _end(self, job_id: int, worker: JobWorker) -> None:
        thread = threading.current_thread()
        with self._changed:
            if self._workers.get(job_id) is worker:
                del self._workers[job_id]
            self._threads.discard(thread)
            self._abandoned.discard(thread)
            abandoned = len(self._abandoned)
            self._changed.notify_all()
        if worker.left_alone:
            log.info("worker.abandoned_ended", job_id=job_id, abandoned=abandoned)

    def _run_safely(self, run: AcceptedRun, loop: HandlerLoop) -> None:
        try:
            self._run_one(run, loop)
        except Exception:
            # A fault of ours; the runs that wait behind this one must still run.
            log.exception("worker.run_not_settled", job_id=run.request.job_id, log_id=run.request.log_id)

    def _next(self, job_id: int, worker: JobWorker) -> AcceptedRun | None:
        """The worker's next run; None when it is to end, and then nobody can submit to it any more."""
        idle = False
        while True:
            with self._lock:
                if self._workers.get(job_id) is not worker:
                    # Left to itself: another thread has the job.
                    return None
                worker.waits = False
                if worker.queue:
                    run = worker.running = worker.queue.popleft()
                    self._queued -= 1
                    return run
                if idle or worker.closing:
                    del self._workers[job_id]
                    return None
                worker.waits = True
            try:
                worker.wake.get(timeout=self._idle_s)
            except queue.Empty:
                idle = True


def _wake(worker: JobWorker) -> None:
    """Have the worker look; under the pool's lock."""
    if worker.waits:
        worker.waits = False
        worker.wake.put(None)
