"""What a driver logs, told by our logger."""

import logging

from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)


class _Forward(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        log.debug("database.driver_says", driver=record.name, level=record.levelname, text=record.getMessage())


def forward_driver_log(package: str) -> None:
    """Send what the driver logs (a server's warnings, mostly of rows that were there already) to our debug log.

    Without a handler of its own it would reach standard error past every setting.
    """
    logger = logging.getLogger(package)
    if not any(isinstance(handler, _Forward) for handler in logger.handlers):
        logger.addHandler(_Forward())
    logger.propagate = False
