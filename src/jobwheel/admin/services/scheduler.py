"""The scheduler, as the use cases see it."""

from collections.abc import Sequence
from typing import Protocol

from jobwheel.admin.domain.ids import NodeId, RunId
from jobwheel.admin.domain.run import PendingRun


class Scheduler(Protocol):
    """What fires runs. Call from the event loop, after the commit of what is told."""

    @property
    def node_id(self) -> NodeId:
        """The id of this node; it may change while the program runs. Read it for each row that gets an owner."""
        ...

    def wake(self) -> None:
        """A schedule changed: look at once for jobs that are due."""
        ...

    def fly(self, runs: Sequence[PendingRun]) -> None:
        """Put pending runs that were just committed, with this node as owner, into the wheel."""
        ...

    async def carry_out_kills(self, pending: Sequence[RunId]) -> None:
        """Kills were asked for: end the runs of which nothing was sent, and have executors told of the others.

        Returns once the pending ones have ended.
        """
        ...
