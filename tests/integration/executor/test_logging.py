"""Whatever a job logs with lands in the log of its run."""

import logging
import os
import sys
import threading
from collections.abc import Iterator

import loguru
import pytest
import structlog

from jobwheel import Executor
from jobwheel.executor import JobLogHandler
from jobwheel.executor.run_log import RunLog
from tests.support.executor_peer import ExecutorPeer
from tests.support.recording_admin import RecordingAdmin


def log_of(executor: Executor, admin: RecordingAdmin) -> list[str]:
    """What a run of the handler "x" has logged, without its frame."""
    executor.start_in_background()
    peer = ExecutorPeer(executor.port)
    log_id = peer.run("x")
    admin.result_of(log_id)
    lines: list[str] = peer.log(log_id)["logContent"].splitlines()
    return lines[1:-1]


@pytest.fixture
def own_logger() -> Iterator[logging.Logger]:
    """A logger that does not tell the root logger."""
    logger = logging.getLogger("tests.own")
    logger.propagate = False
    yield logger
    logger.handlers[:] = []
    logger.propagate = True


@pytest.fixture
def quiet_loguru() -> Iterator[None]:
    loguru.logger.remove()
    yield
    loguru.logger.remove()
    loguru.logger.add(sys.stderr)


def test_the_standard_library(executor: Executor, admin: RecordingAdmin) -> None:
    executor.register("x", lambda: logging.getLogger("shop.orders").warning("order %d", 7))
    (line,) = log_of(executor, admin)
    assert line.endswith(" [WARNING] order 7")


async def wait_and_log(logger: structlog.stdlib.BoundLogger) -> None:
    logger.warning("order settled", order=7)


def test_structlog_on_the_standard_library(executor: Executor, admin: RecordingAdmin) -> None:
    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger("shop"),
        wrapper_class=structlog.stdlib.BoundLogger,
        processors=[structlog.processors.KeyValueRenderer(key_order=["event"])],
    )

    @executor.job("x")
    async def settle() -> None:
        await wait_and_log(logger)

    (line,) = log_of(executor, admin)
    assert line.endswith(" [WARNING] event='order settled' order=7")


@pytest.mark.usefixtures("quiet_loguru")
def test_loguru(executor: Executor, admin: RecordingAdmin) -> None:
    loguru.logger.add(JobLogHandler(), format="{message}")

    @executor.job("x")
    def settle() -> None:
        loguru.logger.info("order {}", 7)
        try:
            int("bad")
        except ValueError:
            loguru.logger.exception("no number")

    loguru.logger.info("outside a run")
    lines = log_of(executor, admin)
    assert lines[0].endswith(" [INFO] order 7")
    assert lines[1].endswith(" [ERROR] no number")
    assert lines[-1].startswith("ValueError: invalid literal")
    assert "".join(lines).count("Traceback") == 1
    assert "outside" not in "".join(lines)


def test_a_logger_that_keeps_to_itself(executor: Executor, admin: RecordingAdmin, own_logger: logging.Logger) -> None:
    own_logger.addHandler(JobLogHandler())
    own_logger.addHandler(JobLogHandler())
    executor.register("x", lambda: own_logger.warning("seen once"))
    (line,) = log_of(executor, admin)
    assert line.endswith(" [WARNING] seen once")


def test_nothing_is_written_in_the_thread_of_the_event_loop(
    executor: Executor, admin: RecordingAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: set[str] = set()
    write = RunLog.write

    def noting(run_log: RunLog, level: str, text: str) -> None:
        writers.add(threading.current_thread().name)
        write(run_log, level, text)

    monkeypatch.setattr(RunLog, "write", noting)

    @executor.job("x")
    async def busy() -> None:
        logging.getLogger("shop").warning("in an async handler, process %d", os.getpid())

    assert len(log_of(executor, admin)) == 1
    assert writers == {"jobwheel-job-7"}
