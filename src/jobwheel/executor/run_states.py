"""Where runs are that this process knows."""

from collections.abc import Collection

from jobwheel.executor.ledger import RunLedger
from jobwheel.executor.spool import Spool
from jobwheel.executor.workers import WorkerPool
from jobwheel.wire.messages import RunStatus


class RunStates:
    """Tells where runs are, by their ids. Safe to use from any thread."""

    def __init__(self, pool: WorkerPool, ledger: RunLedger, spool: Spool) -> None:
        self._pool = pool
        self._ledger = ledger
        self._spool = spool

    def is_idle(self, job_id: int) -> bool:
        """Whether the job is neither running nor queued."""
        return self._pool.is_idle(job_id)

    def is_open(self, log_id: int) -> bool:
        """Whether the run is queued or running."""
        return self._ledger.is_open(log_id)

    def of(self, log_ids: Collection[int]) -> dict[int, RunStatus]:
        """Where each of the runs is. Reads the spool if it has to: call it off the event loop."""
        # In the order of a run's life: one that goes on meanwhile is found at its next place.
        states = dict.fromkeys(log_ids, RunStatus.UNKNOWN)
        accepted = {log_id for log_id in states if self._ledger.is_open(log_id)}
        running = {run.request.log_id for run in self._pool.runs_under_way()}
        for log_id in accepted:
            states[log_id] = RunStatus.RUNNING if log_id in running else RunStatus.QUEUED
        if others := states.keys() - accepted:
            states.update(dict.fromkeys(self._spool.holding(others), RunStatus.REPORTING))
        return states
