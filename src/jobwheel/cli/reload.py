"""For development: a program that is started anew whenever its source changes."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

_POLL_S: Final = 0.5
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_NOT_SOURCES: Final = frozenset({"node_modules", "__pycache__", "site-packages"})

Snapshot = Mapping[str, tuple[int, int]]
"""The moment of the last change and the size of each file."""


def run_with_reload(command: Sequence[str], folder: Path) -> int:
    """Run the command until a signal, and anew whenever a `.py` file below `folder` changes.

    The program is asked to stop by SIGTERM, and is started again once it has ended. One that ends by itself is started
    again with the next change. A second signal makes it end at once.

    Args:
        command: the program. It gets a standard input that ends when this process does, and has to stop then.
        folder: where its source is.

    Returns:
        The exit code of the program that a signal ended.
    """
    with _SignalReader() as signals:
        while True:
            # Taken before the start: what changes while the program loads must not be missed.
            before = take_snapshot(folder)
            with _Program(command) as program:
                code = _until_stopped(program, signals, folder, before)
            if code is not None:
                return code


def _until_stopped(program: "_Program", signals: "_SignalReader", folder: Path, before: Snapshot) -> int | None:
    """The exit code after a signal; None when the source has changed and the program has ended."""
    told = False
    last = before
    while not signals.wait(_POLL_S):
        code = program.poll()
        if code is not None and not told:
            told = True
            _say(f"the program ended ({_how(code)}); it is started again with the next change")
        before_last, last = last, take_snapshot(folder)
        changed = _changed(before, last)
        # Not while files are still being written, as during a checkout: it would start with half of them.
        if changed and last == before_last:
            _say(f"{os.path.relpath(changed, folder)} changed: starting anew")
            return _stop(program, signals, again=True)
    return _stop(program, signals, again=False)


def _stop(program: "_Program", signals: "_SignalReader", *, again: bool) -> int | None:
    """Ask the program to stop, and wait until it has; a signal meanwhile means not `again`, or at once."""
    program.terminate()
    while (code := program.poll()) is None:
        if signals.wait(_POLL_S / 10):
            if not again:
                program.terminate()
            again = False
    return None if again else (code if code >= 0 else 128 - code)


def take_snapshot(folder: Path) -> Snapshot:
    """The state of every `.py` file below the folder, but for hidden folders and virtual environments."""
    snapshot: dict[str, tuple[int, int]] = {}
    for path in _sources(str(folder)):
        try:
            status = os.stat(path)  # noqa: PTH116 - many files, twice a second
        except OSError:
            continue
        snapshot[path] = (status.st_mtime_ns, status.st_size)
    return snapshot


def _sources(folder: str) -> Iterator[str]:
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if _is_watched(root, name)]
        yield from (f"{root}/{name}" for name in files if name.endswith(".py"))


def _is_watched(root: str, name: str) -> bool:
    if name.startswith(".") or name in _NOT_SOURCES:
        return False
    return not os.path.exists(f"{root}/{name}/pyvenv.cfg")  # noqa: PTH110 - as above


def _changed(before: Snapshot, after: Snapshot) -> str | None:
    """One of the files that differ."""
    return next(
        iter(sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))), None
    )


class _Program:
    """The program in a process group of its own, so that Ctrl-C in the terminal reaches it once, through us."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, process_group=0)  # noqa: S603 - the caller's own

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    def poll(self) -> int | None:
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()


class _SignalReader:
    """Signals as events. Through a pipe, so that waiting for them ends when one comes."""

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._former: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        return self

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        os.write(self._writer, b"x")

    def wait(self, timeout_s: float) -> bool:
        """Whether a signal came, within the time or before."""
        ready, _, _ = select.select([self._reader], [], [], timeout_s)
        return bool(ready) and bool(os.read(self._reader, 1))

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"


def _say(text: str) -> None:
    print(f"jobwheel: {text}", file=sys.stderr, flush=True)
