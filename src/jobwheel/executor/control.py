"""Ends runs before they end by themselves: kill, cover, stop."""

from jobwheel.executor import endings
from jobwheel.executor.accepted_run import AcceptedRun, RunsOfJob
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.workers import WorkerPool
from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


class RunControl:
    """Ends runs. What waits in a queue is taken out of it and settled; what is under way is asked to end.

    Each of them is reported. Methods return at once and may be called from any thread; how many runs they end is what
    they return.
    """

    def __init__(self, pool: WorkerPool, runner: JobRunner) -> None:
        self._pool = pool
        self._runner = runner

    def kill_job(self, job_id: int) -> int:
        """End every run of a job that is here."""
        return self._end(self._pool.take_away(job_id), endings.JOB_KILLED, endings.JOB_KILLED_IN_QUEUE)

    def kill_run(self, log_id: int) -> int:
        """End one run."""
        return self._end(self._pool.take_away_run(log_id), endings.RUN_KILLED, endings.RUN_KILLED_IN_QUEUE)

    def cover(self, job_id: int) -> int:
        """End every run of a job that is here, since a later one takes their place."""
        return self._end(self._pool.take_away(job_id), endings.COVERED, endings.COVERED_IN_QUEUE)

    def go_on_without(self, run: AcceptedRun) -> None:
        """Leave the thread of a run to itself that does not end."""
        for left in self._pool.leave_alone(run):
            self._runner.give_up(left, endings.NO_THREAD)

    def stop_all(self, grace_s: float) -> None:
        """End everything. No run may be submitted any more."""
        queued = self._pool.take_away_queued()
        running = [run for run in self._pool.runs_under_way() if not run.settled]
        if queued or running:
            log.error("executor.runs_not_finished", running=len(running), queued=len(queued))
        for run in queued:
            self._runner.give_up(run, endings.STOPPED_IN_QUEUE)
        for run in running:
            self._runner.end(run, endings.STOPPED, grace_s)

    def give_up_all(self) -> None:
        """Settle what is still under way, and end it by force without waiting for it."""
        for run in self._pool.runs_under_way():
            self._runner.end_now(run, endings.STOPPED)

    def _end(self, runs: RunsOfJob, ending: Outcome, ending_in_queue: Outcome) -> int:
        for run in runs.queued:
            self._runner.give_up(run, ending_in_queue)
        if runs.running is None:
            return len(runs.queued)
        self._runner.end(runs.running, ending)
        return len(runs.queued) + 1
