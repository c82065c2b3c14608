"""The SDK that users embed: an executor registers with admins and runs the jobs they send."""

from jobwheel.executor.context import JobContext
from jobwheel.executor.errors import (
    BindError,
    HandlerError,
    NotInJobError,
    NotStartedError,
    SettingError,
    StorageError,
    UnknownSettingError,
)
from jobwheel.executor.executor import Executor
from jobwheel.executor.log_handler import JobLogHandler
from jobwheel.executor.settings import ExecutorSettings

__all__ = [
    "BindError",
    "Executor",
    "ExecutorSettings",
    "HandlerError",
    "JobContext",
    "JobLogHandler",
    "NotInJobError",
    "NotStartedError",
    "SettingError",
    "StorageError",
    "UnknownSettingError",
]
