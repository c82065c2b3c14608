"""What can go wrong in a demo."""

from pathlib import Path
from typing import ClassVar

from jobwheel.kernel.errors import JobwheelError


class ChildFailedError(JobwheelError):
    """A process of the demo does not stay up."""

    code: ClassVar[str] = "demo_child"

    def __init__(self, name: str, how: str, log_path: Path) -> None:
        super().__init__(f"the {name} does not stay up: it {how}; its log is {log_path}")


class NotReadyError(JobwheelError):
    """Something did not come in time."""

    code: ClassVar[str] = "demo_not_ready"

    def __init__(self, what: str, within_s: float, log_path: Path) -> None:
        super().__init__(f"{what} within {within_s:.0f} s; the log is {log_path}")
