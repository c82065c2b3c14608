"""One worker without its executor: runs handlers one after the other, and ends."""

import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from jobwheel import JobContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.invocation import Invocation, Outcome
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import TriggerRequest

Returned = TypeVar("Returned")


@dataclass
class StartedRun:
    """A run that was begun, in a thread of its own if `start` is called."""

    context: JobContext
    invocation: Invocation
    outcome: Outcome | None = None
    error: BaseException | None = None
    _thread: threading.Thread | None = None

    def run(self) -> Outcome:
        """Carry it out as a worker does, inside its context."""
        return self.inside(self.invocation.run)

    def inside(self, function: Callable[[], Returned]) -> Returned:
        """Call a function where the run is known, as in its handler."""
        here = contextvars.copy_context()
        here.run(self.context.enter)
        return here.run(function)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _keep(self) -> None:
        try:
            self.outcome = self.run()
        except BaseException as error:  # noqa: BLE001 - told by who waits for the outcome
            self.error = error

    def result(self) -> Outcome:
        assert self._thread is not None
        self._thread.join(9)
        assert self.outcome is not None, self.error or "the run has not ended in time"
        return self.outcome

    @property
    def log(self) -> str:
        return self.context.log_path.read_text()

    @property
    def lines(self) -> list[str]:
        """The log's lines as level and text."""
        return [line.split(" ", 2)[-1] for line in self.log.splitlines()]


@dataclass
class HandlerBench:
    """The worker. To be closed."""

    folder: Path
    table: HandlerTable = field(default_factory=HandlerTable)
    loop: HandlerLoop = field(default_factory=lambda: HandlerLoop("test"))
    runs: int = 0

    def begin(self, handler: Any, parameter: str = "", **fields: Any) -> StartedRun:
        """Begin a run of a handler in a child process. What is no name is registered first, under its own."""
        name = handler if isinstance(handler, str) else getattr(handler, "__name__", type(handler).__name__)
        if name not in self.table.names:
            self.table.register(name, handler, isolation="process")
        work = self.table.get(name)
        assert work is not None
        self.runs += 1
        request = TriggerRequest(job_id=7, log_id=self.runs, executor_params=parameter, **fields)
        run_log = RunLogFolder(self.folder, SystemClock()).create(self.runs, 0)
        run_log.park()
        context = JobContext(request, run_log)
        return StartedRun(context, work.begin(context, self.loop))

    def run(self, handler: Any, parameter: str = "", **fields: Any) -> tuple[Outcome, StartedRun]:
        """Run a handler in a child process to its end."""
        started = self.begin(handler, parameter, **fields)
        outcome = started.run()
        started.context.run_log.close()  # type: ignore[attr-defined]  # it is a file's here
        return outcome, started

    def message(self, handler: Any, parameter: str = "") -> str | None:
        """The message of a run that must succeed."""
        outcome, started = self.run(handler, parameter)
        assert outcome.code == 200, started.log
        return outcome.message

    def close(self) -> None:
        self.loop.close()
