"""The run's log for logging set-ups that do not pass by the root logger."""

import logging

from jobwheel.executor.context import current_run_log
from jobwheel.executor.log_capture import take_record


class JobLogHandler(logging.Handler):
    """A handler of `logging` that takes what is logged inside a run to that run's log, and leaves the rest.

    While an executor works the root logger has such a one already. It is for what does not get there: loguru
    (`logger.add(JobLogHandler(), format="{message}")`), and loggers with `propagate = False`. What two of them see is
    written once.
    """

    def emit(self, record: logging.LogRecord) -> None:
        take_record(record, current_run_log())
