"""The SDK that users embed: an executor registers with admins and runs the jobs they send."""

from jobwheel.executor.context import JobContext, ParentRun
from jobwheel.executor.errors import (
    BindError,
    HandlerError,
    NotInJobError,
    NotStartedError,
    SettingError,
    StorageError,
)
from jobwheel.executor.executor import Executor
from jobwheel.executor.settings import ExecutorSettings
from jobwheel.executor.thread_kill import RunKilled

__all__ = [
    "BindError",
    "Executor",
    "ExecutorSettings",
    "HandlerError",
    "JobContext",
    "NotInJobError",
    "NotStartedError",
    "ParentRun",
    "RunKilled",
    "SettingError",
    "StorageError",
]
