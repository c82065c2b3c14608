"""Jobwheel: a distributed job-scheduling platform."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobwheel.executor.context import JobContext
    from jobwheel.executor.executor import Executor

__version__ = "0.1.0.dev0"

__all__ = ["Executor", "JobContext", "__version__"]


def __getattr__(name: str) -> Any:
    """The SDK's names, imported when they are first asked for: the admin does not need them."""
    if name in {"Executor", "JobContext"}:
        import jobwheel.executor  # noqa: PLC0415 - see above

        return getattr(jobwheel.executor, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
