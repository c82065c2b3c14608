"""Structured logging on the standard library, so that an application that embeds the SDK keeps its own set-up.

A log line is an event: a stable dotted name and fields. `bind` adds fields (job and run ids) to every event of the
current context.
"""

import contextlib
import contextvars
import json
import logging
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal, TextIO

LogFormat = Literal["text", "json"]

# Libraries that tell at INFO what only their authors want to know.
_CHATTY = ("alembic", "asyncio", "httpx", "httpcore", "uvicorn")

_bound: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("jobwheel_log_fields", default=None)


class EventLogger:
    """Logs events by name with fields: `log.info("run.accepted", run_id=7)`. Fields are rendered only if shown."""

    __slots__ = ("_logger",)

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger

    def debug(self, event: str, **fields: object) -> None:
        self._log(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: object) -> None:
        self._log(logging.INFO, event, fields)

    def warning(self, event: str, **fields: object) -> None:
        self._log(logging.WARNING, event, fields)

    def error(self, event: str, *, exc_info: BaseException | None = None, **fields: object) -> None:
        """Log an error; with `exc_info` its traceback as well."""
        self._log(logging.ERROR, event, fields, exc_info)

    def exception(self, event: str, **fields: object) -> None:
        """Log the exception that is being handled, with its traceback."""
        self._log(logging.ERROR, event, fields, sys.exc_info()[1])

    def _log(self, level: int, event: str, fields: dict[str, object], exc_info: BaseException | None = None) -> None:
        if self._logger.isEnabledFor(level):
            merged = {**(_bound.get() or {}), **fields}
            # The name of the event is the message's format, so a "%" in it must not be read as one.
            self._logger.log(
                level,
                "%s%s",
                event,
                _Fields(merged),
                exc_info=exc_info,
                stacklevel=3,
                extra={"jobwheel_event": event, "jobwheel_fields": merged},
            )


class _Fields:
    """Fields as ` key=value …`, rendered only when a handler formats the record."""

    __slots__ = ("_fields",)

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return "".join(f" {key}={_text(value)}" for key, value in self._fields.items())


def get_logger(name: str) -> EventLogger:
    """The event logger of a module: `get_logger(__name__)`."""
    return EventLogger(logging.getLogger(name))


@contextlib.contextmanager
def bind(**fields: object) -> Iterator[None]:
    """Add fields to every event logged inside the block, in this task or thread."""
    token = _bound.set({**(_bound.get() or {}), **fields})
    try:
        yield
    finally:
        _bound.reset(token)


def configure(level: str = "INFO", log_format: LogFormat = "text", stream: TextIO | None = None) -> None:
    """Send the program's log to `stream` (standard error). For programs of ours; a library never calls it."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_JsonFormatter() if log_format == "json" else _TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for chatty in _CHATTY:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))


class _TextFormatter(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002 - the base's
        return _timestamp(record)


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, object] = {"time": _timestamp(record), "level": record.levelname, "logger": record.name}
        entry["event"] = getattr(record, "jobwheel_event", None) or record.getMessage()
        for name, value in getattr(record, "jobwheel_fields", {}).items():
            # A field never stands in for one of the line's own.
            entry[f"{name}_" if name in entry else name] = value
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text(value: object) -> str:
    text = str(value)
    # Quoted when it holds anything that would break the line or the next field apart.
    return text if text and text.isprintable() and " " not in text and '"' not in text else json.dumps(text)
