"""A process that must not outlive the one that started it."""

import os
import signal
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
