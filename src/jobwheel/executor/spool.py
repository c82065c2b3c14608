"""Results on the disk until an admin has them.

Each process has a folder of its own, `{root}/{instance}`, under a file lock that ends with the process. A process
adopts the folders whose process is gone when it starts, and each minute.
"""

import os
import threading
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from jobwheel.executor.errors import StorageError
from jobwheel.executor.forked import close_in_children
from jobwheel.executor.spool_folder import LOCK_NAME, lock, make_and_lock
from jobwheel.executor.spool_segment import MemorySegment, Segment, SegmentFile, SpoolBatch
from jobwheel.kernel.logging import get_logger
from jobwheel.wire.messages import Result

if TYPE_CHECKING:
    from collections.abc import Callable

log = get_logger(__name__)

SEGMENT_BYTES = 1024 * 1024


class Spool:
    """A queue of results that survives the process. The oldest is read first; memory is bounded by what is read.

    `put`, `pending` and `adopt` may be called from any thread, the rest by one reader at a time. All but `pending` may
    have to wait for the disk. A result that is put is safe from
    a crash of the process at once, and from a crash of the machine after the next `sync`. While the disk refuses to
    write, results are kept in memory, and are sent like the others.
    """

    def __init__(self, root: Path, instance: str, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._root = root
        self._folder = root / instance
        self._segment_bytes = segment_bytes
        self._lock = threading.Lock()
        # Made anew with each change, so that who counts need not wait for who writes.
        self._segments: tuple[Segment, ...] = ()
        self._active: SegmentFile | None = None
        self._memory: MemorySegment | None = None
        self._unsynced: list[SegmentFile] = []
        self._locks: dict[Path, int] = {}
        self._unremovable: set[Path] = set()
        self._made = 0
        self._closed = False
        self.on_put: Callable[[], None] = _nothing
        """Called after each `put`, in its thread."""

    @property
    def pending(self) -> int:
        """How many results wait. Never waits for the disk, whoever else does."""
        return sum(segment.pending for segment in self._segments)

    def open(self) -> None:
        """Make the folder and adopt what processes that are gone have left.

        Raises:
            StorageError: the folder cannot be made.
        """
        try:
            self._locks[self._folder] = make_and_lock(self._folder)
        except OSError as error:
            raise StorageError(self._folder, error.strerror or str(error)) from error
        close_in_children(self, Spool._let_go)
        self.adopt()

    def _let_go(self) -> None:
        """In a forked child, whose copies would keep the folders locked when their process is gone."""
        for descriptor in self._locks.values():
            os.close(descriptor)
        self._locks.clear()

    def adopt(self) -> int:
        """Take over the spools of processes that are gone; returns how many results that brought."""
        adopted = 0
        for folder in sorted(self._root.iterdir()):
            if folder not in self._locks and folder.is_dir():
                adopted += self._adopt_folder(folder)
        return adopted

    def _adopt_folder(self, folder: Path) -> int:
        try:
            descriptor = lock(folder)
        except OSError:
            return 0  # its process lives
        segments = _load_all(folder)
        pending = sum(segment.pending for segment in segments)
        if pending:
            log.info("spool.adopted", folder=folder, results=pending)
        with self._lock:
            if self._closed:
                os.close(descriptor)
                return 0
            self._locks[folder] = descriptor
            self._segments = (*segments, *self._segments)
            if not segments:
                self._leave(folder)
        self._drop_finished()
        return pending

    def put(self, result: Result) -> None:
        """Keep a result. Never raises: a disk that refuses is reported, and the result is kept in memory."""
        self._keep(result)
        self.on_put()

    def _keep(self, result: Result) -> None:
        with self._lock:
            try:
                if self._closed:
                    self._put_late(result)
                else:
                    self._writable().append(result)
            except OSError as error:
                self._put_into_memory(result, error)

    def _put_late(self, result: Result) -> None:
        """A run that outlived the stop: its result waits for the next process."""
        # In a folder of its own: that of the spool is not locked any more, and who adopts one must see all or none.
        self._made += 1
        folder = self._root / f"{self._folder.name}-late-{self._made}"
        descriptor = make_and_lock(folder)
        try:
            segment = SegmentFile.create(folder / "00000001.spool")
            try:
                segment.append(result)
            finally:
                segment.close()
        finally:
            os.close(descriptor)

    def _writable(self) -> SegmentFile:
        if self._active is None or self._active.size >= self._segment_bytes:
            self._made += 1
            active = SegmentFile.create(self._folder / f"{self._made:08d}.spool")
            # Only then, so that a disk that refuses changes nothing here.
            if self._active is not None:
                self._active.park()
                self._unsynced.append(self._active)
            self._active = active
            self._segments = (*self._segments, active)
        return self._active

    def _put_into_memory(self, result: Result, error: OSError) -> None:
        if self._memory is None or self._memory not in self._segments:
            log.error("spool.cannot_write", folder=self._folder, error=str(error), kept="in memory")
            self._memory = MemorySegment()
            self._segments = (*self._segments, self._memory)
        self._memory.append(result)

    def read(self, most: int, most_bytes: int) -> SpoolBatch | None:
        """The oldest results, at most `most` and about `most_bytes`, at least one; None if nothing waits.

        Raises:
            OSError: what waits cannot be read now.
        """
        self._drop_finished()
        failure: OSError | None = None
        with self._lock:
            for segment in [each for each in self._segments if each.pending]:
                try:
                    return segment.read(most, most_bytes)
                except FileNotFoundError as error:
                    self._lose(segment, error)
                except OSError as error:
                    # It may be read later; what others hold need not wait for that.
                    failure = failure or error
        if failure is not None:
            raise failure
        return None

    def _lose(self, segment: Segment, error: OSError) -> None:
        """Somebody has removed its file: those behind it must not wait for ever."""
        log.error("spool.results_lost", file=error.filename, results=segment.pending, reason="its file is gone")
        segment.close()
        if segment is self._active:
            self._active = None

    def holding(self, log_ids: Collection[int]) -> set[int]:
        """Those of the runs whose results wait. Reads all that waits: call it off the event loop."""
        held: set[int] = set()
        with self._lock:
            segments = [segment for segment in self._segments if segment.pending]
        for segment in segments:
            # One by one, so that nobody who puts a result waits for all of them.
            with self._lock:
                held |= segment.log_ids().intersection(log_ids)
        return held

    def done(self, batch: SpoolBatch) -> None:
        """An admin has the results of a batch, which was the last one read. After the close: nothing."""
        with self._lock:
            if self._closed:
                return
            batch.segment.done(batch)
        self._drop_finished()

    def move_to_end(self, batch: SpoolBatch) -> None:
        """Let the others go before the results of a batch, which was the last one read. After the close: nothing."""
        if self._closed:
            return
        for result in batch.results:
            self._keep(result)
        self.done(batch)

    def sync(self) -> None:
        """Make everything put so far safe from a crash of the machine. Slow: call it off the event loop."""
        with self._lock:
            segments = [*self._unsynced, *([self._active] if self._active is not None else [])]
            self._unsynced.clear()
        for segment in segments:
            self._sync(segment)

    def _sync(self, segment: SegmentFile) -> None:
        descriptor = -1
        try:
            with self._lock:
                if segment.pending and not self._closed:
                    descriptor = segment.duplicate()
            if descriptor >= 0:
                os.fsync(descriptor)
        except OSError as error:
            log.warning("spool.cannot_sync", folder=self._folder, error=str(error))
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def close(self) -> None:
        """Close the files. What is left waits for the next process."""
        with self._lock:
            self._closed = True
            self._drop_locked(keep_active=False)
            for segment in self._segments:
                segment.close()
            self._segments = ()
            self._active = None
            for folder in list(self._locks):
                self._leave(folder)

    def _drop_finished(self) -> None:
        with self._lock:
            self._drop_locked(keep_active=True)

    def _drop_locked(self, *, keep_active: bool) -> None:
        while self._segments and not self._segments[0].pending:
            segment = self._segments[0]
            if segment is self._active and keep_active:
                return
            self._segments = self._segments[1:]
            segment.delete()
            if segment is self._active:
                self._active = None
            self._leave_if_empty(segment)

    def _leave_if_empty(self, segment: Segment) -> None:
        folder = segment.folder
        if folder is None or folder == self._folder or folder not in self._locks:
            return
        if not any(other.folder == folder for other in self._segments):
            self._leave(folder)

    def _leave(self, folder: Path) -> None:
        """Give the folder's lock back; the folder goes too if nothing is left in it."""
        try:
            if not any(folder.glob("*.spool")):
                (folder / LOCK_NAME).unlink(missing_ok=True)
                folder.rmdir()
        except OSError as error:
            # It is come upon each minute, and told once.
            if folder not in self._unremovable:
                self._unremovable.add(folder)
                log.warning("spool.cannot_remove", folder=folder, error=str(error))
        os.close(self._locks.pop(folder))


def _load_all(folder: Path) -> list[SegmentFile]:
    segments: list[SegmentFile] = []
    for path in sorted(folder.glob("*.spool")):
        try:
            segments.append(SegmentFile.load(path))
        except OSError as error:
            log.warning("spool.cannot_read", file=path, error=str(error))
    return segments


def _nothing() -> None:
    pass
