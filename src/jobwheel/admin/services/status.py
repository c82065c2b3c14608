"""What health and metrics read."""

from collections.abc import Sequence
from typing import Protocol

from jobwheel.admin.engine.figures import EngineFigures, HealthReason


class EngineStatus(Protocol):
    """Read by `/health` and `/metrics`, from the event loop, at any time; must not wait for anything."""

    def reasons(self) -> Sequence[HealthReason]:
        """Why the engine is not healthy; empty = healthy."""
        ...

    def collect(self) -> EngineFigures:
        """The figures of this moment."""
        ...
