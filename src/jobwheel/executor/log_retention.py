"""Removes the logs of runs that are old, or too many."""

import asyncio
import contextlib
import errno
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from jobwheel.executor import log_marks
from jobwheel.executor.run_log import DAY_MS, day_of
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.logging import get_logger
from jobwheel.kernel.service import Service

log = get_logger(__name__)

MOST_PER_STEP: Final = 500
_FIRST_S: Final = 60.0
_EVERY_S: Final = 3600.0
_PAUSE_S: Final = 0.1
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_NAME: Final = re.compile(rf"((-?\d+)\.log)({re.escape(log_marks.SUFFIX)})?")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long logs are kept: so many days, and of the younger ones the newest with so many bytes. 0: no limit."""

    days: int
    most_bytes: int


@dataclass(slots=True)
class Swept:
    """What a sweep has done so far."""

    files: int = 0
    bytes: int = 0
    failed: int = 0
    error: str = ""
    left_bytes: int = 0
    """What is left, where the number of bytes is limited."""


@dataclass(frozen=True, slots=True, order=True)
class _File:
    """A log with its index, if it has one; or an index whose log is gone, which has `path` to itself."""

    changed_s: float
    size: int
    log_id: int
    path: str
    index: str | None = None


class Sweep:
    """One pass over the folder of run logs, in steps that are small enough to run beside the work.

    The index of a big log counts as a part of it, and goes with it.

    The log of an open run is never removed, however old; nor is anything that is not named like a run's log.

    Args:
        root: the folder that the days' folders are in.
        retention: what is kept.
        is_open: whether a run of this id is queued or running.
        now_ms: the time, epoch milliseconds.
    """

    def __init__(self, root: str, retention: Retention, is_open: Callable[[int], bool], now_ms: int) -> None:
        self.swept = Swept()
        self._root = root
        self._retention = retention
        self._is_open = is_open
        self._now_ms = now_ms

    def steps(self) -> Iterator[None]:
        """Do the pass; each step removes at most 500 files, or looks through the folder of one day.

        Raises:
            OSError: the folder cannot be read.
        """
        if self._retention.days:
            yield from self._remove_old(self._now_ms - self._retention.days * DAY_MS)
        if self._retention.most_bytes:
            yield from self._remove_surplus(self._retention.most_bytes)

    def _days(self) -> list[str]:
        with os.scandir(self._root) as entries:
            return sorted(entry.name for entry in entries if _DAY.fullmatch(entry.name) and _is_folder(entry))

    def _remove_old(self, before_ms: int) -> Iterator[None]:
        for day in self._days():
            if day >= day_of(before_ms):
                return
            # By the last change too: a run may have been under way for long.
            old = [file for file in self._files(day) if file.changed_s < before_ms / 1000]
            yield from self._remove(old)
            self._remove_folder(day)

    def _remove_surplus(self, most_bytes: int) -> Iterator[None]:
        sizes: dict[str, int] = {}
        for day in self._days():
            sizes[day] = sum(file.size for file in self._files(day))
            yield
        self.swept.left_bytes = sum(sizes.values())
        for day in sizes:
            surplus = self.swept.left_bytes - most_bytes
            if surplus <= 0:
                return
            before = self.swept.bytes
            yield from self._remove(self._oldest(day, surplus))
            self.swept.left_bytes -= self.swept.bytes - before
            self._remove_folder(day)

    def _oldest(self, day: str, surplus: int) -> Iterator[_File]:
        for file in sorted(self._files(day)):
            if surplus <= 0:
                return
            if not self._is_open(file.log_id):
                surplus -= file.size
                yield file

    def _files(self, day: str) -> Iterator[_File]:
        logs: dict[str, _File] = {}
        indexes: dict[str, _File] = {}
        try:
            with os.scandir(f"{self._root}/{day}") as entries:
                for entry in entries:
                    name = _NAME.fullmatch(entry.name)
                    if name and entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        file = _File(status.st_mtime, status.st_size, int(name[2]), entry.path)
                        (indexes if name[3] else logs)[name[1]] = file
        except OSError as error:
            self._note(error)
        for name_of_log, index in indexes.items():
            log_file = logs.get(name_of_log)
            logs[name_of_log] = index if log_file is None else _with_index(log_file, index)
        yield from logs.values()

    def _remove(self, files: Iterator[_File] | list[_File]) -> Iterator[None]:
        done = 0
        for file in files:
            # Asked as late as can be: a resend may have opened the run anew.
            if self._is_open(file.log_id):
                continue
            try:
                _unlink(file)
            except FileNotFoundError:
                continue
            except OSError as error:
                self._note(error)
                continue
            self.swept.files += 1
            self.swept.bytes += file.size
            done += 1
            if done % MOST_PER_STEP == 0:
                yield
        yield

    def _remove_folder(self, day: str) -> None:
        # Runs of today and of its neighbours may be about to be put there.
        if day < day_of(self._now_ms - DAY_MS):
            try:
                os.rmdir(f"{self._root}/{day}")  # noqa: PTH106 - beside its kin
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    self._note(error)

    def _note(self, error: OSError) -> None:
        self.swept.failed += 1
        self.swept.error = str(error)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _with_index(log_file: _File, index: _File) -> _File:
    # The time is the log's: that somebody has read it makes it no younger.
    return replace(log_file, size=log_file.size + index.size, index=index.path)


def _unlink(file: _File) -> None:
    # The index first, so that none is left without its log.
    if file.index is not None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file.index)  # noqa: PTH108 - beside its kin
    os.unlink(file.path)  # noqa: PTH108 - of a great many files


class LogCleaner(Service):
    """Sweeps a minute after the start and then each hour, in a thread, with pauses."""

    def __init__(self, root: str, retention: Retention, is_open: Callable[[int], bool], clock: Clock) -> None:
        super().__init__("executor.log_cleaner", clock)
        self._root = root
        self._retention = retention
        self._is_open = is_open

    async def on_start(self) -> None:
        if self._retention.days or self._retention.most_bytes:
            self.supervise("sweep", self._sweep_for_ever)

    async def _sweep_for_ever(self) -> None:
        await self.clock.wait(_FIRST_S)
        while True:
            await self.run_once()
            await self.clock.wait(_EVERY_S)

    async def run_once(self) -> Swept:
        """Sweep once; returns what was removed, which the log tells too."""
        sweep = Sweep(self._root, self._retention, self._is_open, self.clock.now())
        steps = sweep.steps()
        try:
            while await asyncio.to_thread(_step, steps):
                await self.clock.wait(_PAUSE_S)
        except OSError as error:
            log.warning("run_logs.cannot_sweep", folder=self._root, error=str(error))
        self._tell(sweep.swept)
        return sweep.swept

    def _tell(self, swept: Swept) -> None:
        if swept.files:
            log.info("run_logs.removed", files=swept.files, bytes=swept.bytes)
        if swept.failed:
            log.warning("run_logs.not_removed", failures=swept.failed, last_error=swept.error)
        if swept.left_bytes > self._retention.most_bytes > 0:
            log.warning("run_logs.over_limit", bytes=swept.left_bytes, most_bytes=self._retention.most_bytes)


def _step(steps: Iterator[None]) -> bool:
    """Whether there was one more."""
    return next(steps, _END) is not _END


_END: Final = object()
