"""Copying the log of an SQLite database into its file, beside the transactions instead of in the middle of them.

The connection whose commit finds the log full copies it, and everybody waits: a seventh of the writing process's time
at thousands of runs a second, most of it for the disk. A copy that somebody else makes meanwhile holds up nobody. It
never reaches the end of a log that grows on, so the full log is still the writer's to finish and to begin anew, but
little is left to copy then.
"""

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Final

from jobwheel.kernel.logging import get_logger

log = get_logger(__name__)

AFTER_CHANGES: Final = 40_000
"""So many changed rows are a log that is worth a copy: some thousand pages, with those of the indexes. A copy earlier
writes the same pages more often: those of the open runs are changed with each of them."""

LOG_PAGES_BESIDE: Final = 32_768
"""At so many pages the writers themselves make an end (128 MiB), if there is somebody who copies beside them."""


class Checkpoints:
    """A thread, with a connection of its own, that copies the log whenever enough was written.

    What it cannot copy, because a reader is in the way or the disk is full, stays in the log: nothing depends on it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = 0
        self._wanted = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._serve, name="jobwheel-checkpoints", daemon=True)
        self._thread.start()

    def note(self, changes: int) -> None:
        """The writer's connection has changed so many rows since it was opened."""
        # A connection that was opened anew counts from 0.
        if not 0 <= changes - self._seen < AFTER_CHANGES:
            self._seen = changes
            self._wanted.set()

    def close(self) -> None:
        """Wait for a copy under way, and end."""
        self._closing = True
        self._wanted.set()
        self._thread.join()

    def _serve(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._closing:
                break
            try:
                connection = connection or _connect(self._path)
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.Error as error:
                log.debug("database.checkpoint_failed", error=str(error))
                _close(connection)
                connection = None
        _close(connection)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.close()
