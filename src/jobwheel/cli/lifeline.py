"""Processes that must not live on: when the one that started them is gone, or when all is done."""

import contextlib
import os
import signal
import sys
import threading

_CHUNK = 4096


def stop_when_stdin_ends() -> None:
    """Have this process get SIGTERM once its standard input ends.

    Whoever starts it holds the other end of a pipe. The system closes that end however the holder dies.
    """
    threading.Thread(target=_watch, name="jobwheel-lifeline", daemon=True).start()


def _watch() -> None:
    try:
        while os.read(0, _CHUNK):
            pass
    except OSError:
        # A standard input that cannot be read is one that has ended.
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def end_within(delay_s: float) -> None:
    """Have this process, which has done all that it was to do, end with status 0 after a while at the latest.

    A thread that asks a name server cannot be told to leave off, and both the event loop and the interpreter wait for
    it before they end: for as long as the server hangs.
    """
    timer = threading.Timer(delay_s, _end)
    timer.daemon = True
    timer.start()


def _end() -> None:
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    os._exit(0)
