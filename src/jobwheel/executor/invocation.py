"""What carries a run out: a handler's function, a child process, a script's process group."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from jobwheel.executor.context import JobContext
    from jobwheel.executor.handler_loop import HandlerLoop


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended."""

    code: int
    message: str | None = None


class Invocation(Protocol):
    """One run being carried out. Made by `Work.begin`, used once."""

    def run(self) -> Outcome:
        """Carry it out to its end in the calling thread, the worker's.

        What user code raises passes through; whoever calls makes the failed outcome of it.
        """
        ...

    def stop(self) -> None:
        """Ask it to end by itself. From any thread, at any moment, also before `run` and after it."""
        ...

    def kill(self) -> bool:
        """End it by force. From any thread, at any moment. False: it may go on, since nothing can end it for sure."""
        ...


class Work(Protocol):
    """What an accepted run is to carry out. Of one piece of work many runs may be under way at once."""

    @property
    def name(self) -> str:
        """What the run's log calls it."""
        ...

    def begin(self, context: "JobContext", loop: "HandlerLoop") -> Invocation:
        """Make the invocation; nothing of it runs yet.

        Args:
            context: the run's. The worker thread has entered it when it calls `run`.
            loop: the worker's event loop, for what is async.
        """
        ...
