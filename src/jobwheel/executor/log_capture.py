"""Standard `logging` inside a run goes to the run's log."""

import logging
import threading
from collections.abc import Callable

from jobwheel.executor.run_log import LogSink

_FORMATTER = logging.Formatter()
_TRACEBACK = "Traceback (most recent call last):"


class RunLogger(logging.Logger):
    """The logger of one run.

    Every line goes to the run's log, also from threads that do not know the run; the application's own handlers see
    what the root logger's level lets through.
    """

    def __init__(self, run_log: LogSink) -> None:
        super().__init__("jobwheel.run")
        self.parent = logging.getLogger()
        self._run_log = run_log

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - the base's name
        # Not through the base's cache and manager: this logger is in no tree.
        return level >= self.level and not self.disabled

    def callHandlers(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        self._run_log.write(record.levelname, render(record))
        record.jobwheel_written = True
        if record.levelno >= logging.getLogger().getEffectiveLevel():
            super().callHandlers(record)


class RunLogHandler(logging.Handler):
    """Put on the root logger: takes what is logged inside a run to that run's log.

    Args:
        current: gives the log of the run that is calling, None outside a run.
    """

    def __init__(self, current: Callable[[], LogSink | None]) -> None:
        super().__init__()
        self._current = current

    def handle(self, record: logging.LogRecord) -> bool:
        # Without the base's lock: the run's log has its own, so that a run that writes does not hold up the others.
        kept = bool(self.filter(record))
        if kept:
            self.emit(record)
        return kept

    def emit(self, record: logging.LogRecord) -> None:
        take_record(record, self._current())
        # An application that set up no logging still sees its warnings on standard error, as without this handler.
        last_resort = logging.lastResort
        if last_resort and record.levelno >= last_resort.level and not self._others_see(record):
            last_resort.handle(record)

    def _others_see(self, record: logging.LogRecord) -> bool:
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return True
            logger = logger.parent if logger.propagate else None
        return False


class LogCapture:
    """Installs the handler for as long as at least one executor of the process works. Safe to use from any thread."""

    def __init__(self, current: Callable[[], LogSink | None]) -> None:
        self._handler = RunLogHandler(current)
        self._lock = threading.Lock()
        self._level: int | None = None

    def install(self) -> None:
        """Put the handler on the root logger.

        Where the application has set up no logging, the root's level becomes INFO, or jobs could not log at INFO.
        """
        root = logging.getLogger()
        with self._lock:
            if not root.handlers and root.level == logging.WARNING:
                self._level = root.level
                root.setLevel(logging.INFO)
            root.addHandler(self._handler)

    def remove(self) -> None:
        """Take the handler away, and the level back if nobody else has changed it since."""
        root = logging.getLogger()
        with self._lock:
            root.removeHandler(self._handler)
            if self._level is not None and root.level == logging.INFO:
                root.setLevel(self._level)
            self._level = None


def take_record(record: logging.LogRecord, run_log: LogSink | None) -> None:
    """Write the record to the log, once however many handlers see it; None: outside a run."""
    if run_log is not None and not getattr(record, "jobwheel_written", False):
        run_log.write(record.levelname, render(record))
        record.jobwheel_written = True


def render(record: logging.LogRecord) -> str:
    """The text of a record, with its traceback. Arguments that do not fit the message are shown beside it."""
    try:
        text = record.getMessage()
    except Exception as error:  # noqa: BLE001 - a bad log call must not fail the run, whatever its arguments raise
        text = f"{record.msg} (its arguments do not fit: {type(error).__name__})"
    # Loguru's messages have it already.
    if record.exc_info and record.exc_info[1] is not None and _TRACEBACK not in text:
        text = f"{text}\n{_FORMATTER.formatException(record.exc_info)}"
    if record.stack_info:
        text = f"{text}\n{record.stack_info}"
    return text.rstrip("\n")
