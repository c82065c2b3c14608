"""The child process of a worker, as its parent sees it."""

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final

import msgspec

from jobwheel.executor.child_messages import READ_EVENT, Command, Ended, Event, LogLine, Messages, line_of
from jobwheel.executor.forked import close_in_children
from jobwheel.executor.output_lines import OutputLines

_CHUNK_BYTES: Final = 65_536
# More than a pipe holds: who writes without end must not keep a run from ending.
_MOST_LAST_CHUNKS: Final = 4
# A child's end is seen at once by its pipe, unless a process that it has forked holds the pipe open.
_LOOK_S: Final = 0.5


class HandlerProcess:
    """A child in a session of its own, that ends with this process however that ends.

    One thread talks to it and finally calls `finish`; any thread may `kill` it.

    Args:
        name: the handler's, for who looks at the list of processes.

    Raises:
        OSError: the system gives no process.
    """

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._reaped = False
        self._messages = Messages()
        self._lines = OutputLines()
        with ExitStack() as theirs, ExitStack() as ours:
            self._selector = ours.enter_context(selectors.DefaultSelector())
            self._events, their_events = _pipe(ours, theirs)
            their_lifeline, _ = _pipe(theirs, ours)
            self._process = _started(name, their_events, their_lifeline)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._commands = ours.enter_context(self._process.stdin).fileno()
            self._output = ours.enter_context(self._process.stdout).fileno()
            self._ours = ours.pop_all()
        # Who holds one end of them while this process is gone lets the child live.
        close_in_children(self, HandlerProcess.close)
        os.set_blocking(self._output, False)
        self._selector.register(self._events, selectors.EVENT_READ)
        self._selector.register(self._output, selectors.EVENT_READ)

    @property
    def ended(self) -> bool:
        """Whether it has ended. It is not reaped by that: its number, and its group's, stay its own."""
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            # Somebody else in this process reaps whatever there is.
            return True

    def send(self, command: Command) -> None:
        """Send a command. That the child is gone is for `events` to find out."""
        data = line_of(command)
        with suppress(BrokenPipeError):
            while data:
                data = data[os.write(self._commands, data) :]

    def events(self) -> Iterator[Event]:
        """What the child says, in order, up to its end; among it the lines of what is written past its `print`."""
        while True:
            # Looked at first: what it has said before its end is still read then.
            ended = self.ended
            ready = {key.fd for key, _ in self._selector.select(0 if ended else _LOOK_S)}
            if self._events in ready:
                data = os.read(self._events, _CHUNK_BYTES)
                if not data:
                    break
                yield from self._said(data)
            elif ended:
                break
            if self._output in ready:
                yield from self._written(1)
        yield from self.written()

    def _said(self, data: bytes) -> Iterator[Event]:
        for message in self._messages.feed(data):
            try:
                event: Event = READ_EVENT.decode(message)
            except (msgspec.DecodeError, UnicodeDecodeError):
                # Only a handler that writes to descriptors which are not its own gets here.
                event = LogLine("ERROR", f"unreadable, from the child process: {message[:200]!r}")
            if isinstance(event, Ended):
                yield from self.written()
            yield event

    def written(self) -> Iterator[LogLine]:
        """What stands in its output now, an unfinished line included."""
        yield from self._written(_MOST_LAST_CHUNKS)
        for line in self._lines.end():
            yield LogLine("INFO", line)

    def _written(self, most_chunks: int) -> Iterator[LogLine]:
        for _ in range(most_chunks):
            try:
                data = os.read(self._output, _CHUNK_BYTES)
            except BlockingIOError:
                return
            if not data:
                with suppress(KeyError):
                    self._selector.unregister(self._output)
                return
            for line in self._lines.feed(data):
                yield LogLine("INFO", line)

    def kill(self) -> None:
        """End it at once, and all of its group. From any thread, at any moment."""
        with self._lock:
            if not self._reaped:
                self._kill_group()

    def finish(self, grace_s: float) -> str:
        """Wait until it has ended, and end what is left of its group. Once.

        Args:
            grace_s: after how long it is ended by force.

        Returns:
            How it ended, for people.
        """
        force = threading.Timer(grace_s, self.kill)
        force.daemon = True
        force.start()
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        force.cancel()
        with self._lock:
            # Before it is reaped: afterwards the group's number might be somebody else's.
            self._kill_group()
            self._reaped = True
            return _ending(self._process.wait())

    def close(self) -> None:
        """Give the pipes back, after `finish`."""
        self._ours.close()

    def _kill_group(self) -> None:
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError, PermissionError):
                kill(self._process.pid, signal.SIGKILL)


def _pipe(readers: ExitStack, writers: ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    readers.callback(os.close, reader)
    writers.callback(os.close, writer)
    return reader, writer


def _started(name: str, events: int, lifeline: int) -> "subprocess.Popen[bytes]":
    # -P: what lies in the working directory must not take the place of a module. The child is given our own path.
    command = [sys.executable, "-P", "-m", "jobwheel.executor.child", str(events), str(lifeline), name]
    return subprocess.Popen(  # noqa: S603 - our own program, and no shell
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(events, lifeline),
        start_new_session=True,
    )


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    hint = ", from outside or for want of memory" if -code == signal.SIGKILL else ""
    return f"signal {name} ({-code}){hint}"
