"""A run that this executor has said yes to."""

from dataclasses import dataclass

from jobwheel.executor.invocation import Invocation, Outcome, Work
from jobwheel.executor.ledger import RunKey
from jobwheel.executor.run_log import RunLog
from jobwheel.wire.messages import TriggerRequest


@dataclass(slots=True, eq=False)
class AcceptedRun:
    """A run that this executor has said yes to. It owns its log.

    The fields from `settled` on belong to the `JobRunner`: `settled` is set once, by who settles it; `ending` is what
    the run ends with, whatever its handler does, since it was asked to end; `forced` says that it was not only asked;
    `thread_id` is the thread it is in.
    """

    request: TriggerRequest
    work: Work
    run_log: RunLog
    settled: bool = False
    ending: Outcome | None = None
    forced: bool = False
    invocation: Invocation | None = None
    thread_id: int | None = None

    @property
    def key(self) -> RunKey:
        return (self.request.log_id, self.request.log_date_time)


@dataclass(frozen=True, slots=True)
class RunsOfJob:
    """What there is of a job: the run under way, and those that were waiting for it."""

    running: AcceptedRun | None
    queued: list[AcceptedRun]
