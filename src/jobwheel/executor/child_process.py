"""A child process in a process group of its own, whose output is a run's log."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from jobwheel.executor.context import JobContext
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.lifeline import Lifeline
from jobwheel.executor.output_lines import OutputLines
from jobwheel.kernel.clock import Clock
from jobwheel.kernel.instants import instant_text
from jobwheel.wire.messages import FAILURE, SUCCESS

_CHUNK_BYTES: Final = 65_536

DRAIN_S: Final = 1.0
"""How long output is still read after the child's end: from a `tee` behind it, or from what it left running."""

TIDY_S: Final = 10.0
"""The same after `stop`: a shell ends at once, and what it had started may take its time."""

_OWN_VARIABLES: Final = "JOBWHEEL_"
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# Becomes the program when it is told to. If this process is killed before, the end of its input tells it to end.
_BECOME_WHEN_TOLD: Final = ("/bin/sh", "-c", 'read -r _ || exit 1; exec "$@" </dev/null', "jobwheel")


@dataclass(frozen=True, slots=True)
class Command:
    """What to start: the program and its arguments, no shell in between, and the whole environment."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


class ChildProcess:
    """One child and what it starts in its turn. Used once.

    It is the leader of a process group, which `stop` and `kill` reach as a whole. The leader's exit is seen before it
    is reaped: until then the system gives the group's number to nobody else. If this process is killed meanwhile, the
    kernel kills the group: on Linux, and from the program's first step on if the names in its environment are such that
    a shell hands them on, which nearly all are.

    Args:
        write: takes the lines of its output with their level, standard error's among them in the order of their coming.
        clock: for how long output is waited for after its end.
    """

    def __init__(self, write: Callable[[str, str], None], clock: Clock) -> None:
        self._write = write
        self._clock = clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_to_end = False

    def run(self, command: Command) -> Outcome:
        """Start it and stay with it to its end, in the calling thread.

        Raises:
            OSError, ValueError: it cannot be started.
        """
        with Lifeline() as lifeline:
            output, theirs = os.pipe()
            try:
                try:
                    process = self._start(command, theirs, lifeline)
                finally:
                    os.close(theirs)
                if process is None:
                    return Outcome(FAILURE, "it was ended before it began")
                return self._follow(process, output)
            finally:
                os.close(output)

    def stop(self) -> None:
        """SIGTERM to the group. What is left of it is killed once the leader and their output have ended.

        Who holds the output open is waited for `TIDY_S` at most.
        """
        self._signal(signal.SIGTERM)

    def kill(self) -> bool:
        """SIGKILL to the group. False: it is another user's by now, and cannot be killed."""
        return self._signal(signal.SIGKILL)

    def _start(self, command: Command, output: int, lifeline: Lifeline) -> "subprocess.Popen[bytes] | None":
        with self._lock:
            if self._asked_to_end:
                return None
            waits = _can_wait(command)
            self._process = process = subprocess.Popen(  # noqa: S603 - the caller's matter; no shell reads the arguments
                (*_BECOME_WHEN_TOLD, *command.arguments) if waits else command.arguments,
                stdin=subprocess.PIPE if waits else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=command.environment,
                start_new_session=True,
                pass_fds=(lifeline.descriptor,),
            )
            lifeline.tie(process.pid)
            if process.stdin is not None:
                with suppress(BrokenPipeError), process.stdin:
                    process.stdin.write(b"\n")
            return process

    def _signal(self, number: signal.Signals) -> bool:
        with self._lock:
            self._asked_to_end = True
            return self._process is None or _signal_group(self._process.pid, number)

    def _follow(self, process: "subprocess.Popen[bytes]", output: int) -> Outcome:
        try:
            exit_seen = _Exit(process.pid)
            try:
                self._copy(output, exit_seen.descriptor)
            finally:
                exit_seen.close()
        except BaseException:
            self.kill()
            self._reap(process)
            raise
        code = self._reap(process)
        return _outcome(code) if exit_seen.known else Outcome(FAILURE, "how it ended is not known: its exit was lost")

    def _copy(self, output: int, ended: int) -> None:
        """Take its output to the log until it has ended and, within the time for that, its output as well."""
        lines = OutputLines()
        until_s: float | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            selector.register(ended, selectors.EVENT_READ)
            while selector.get_map():
                left_s = None if until_s is None else until_s - self._clock.monotonic()
                if left_s is not None and left_s <= 0:
                    break
                for key, _ in selector.select(left_s):
                    if key.fd == ended:
                        selector.unregister(ended)
                        until_s = self._clock.monotonic() + (TIDY_S if self._asked_to_end else DRAIN_S)
                    elif not self._take(output, lines):
                        selector.unregister(output)
            left_open = bool(selector.get_map())
        self._write_each(lines.end())
        if left_open:
            self._write("WARNING", "what it started is still running and holds its output; what that writes is lost")

    def _take(self, output: int, lines: OutputLines) -> bool:
        data = os.read(output, _CHUNK_BYTES)
        self._write_each(lines.feed(data))
        return bool(data)

    def _write_each(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._write("INFO", line)

    def _reap(self, process: "subprocess.Popen[bytes]") -> int:
        with self._lock:
            if self._asked_to_end:
                # The leader has ended, or is ending: nobody is left who could tell the others of its group to.
                _signal_group(process.pid, signal.SIGKILL)
            self._process = None
            return process.wait()


def _can_wait(command: Command) -> bool:
    """Whether a shell can become the program. If there is no such program, the system's own error says so best."""
    if sys.platform != "linux" or shutil.which(command.arguments[0]) is None:
        return False
    return all(map(_NAME.fullmatch, command.environment))


class _Exit:
    """Sees a child's exit without reaping it: then `descriptor` can be read."""

    def __init__(self, process_id: int) -> None:
        self._process_id = process_id
        self.descriptor, self._theirs = os.pipe()
        self.known = False
        self._thread = threading.Thread(target=self._wait, name=f"jobwheel-child-{process_id}", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            os.close(self._theirs)
            os.close(self.descriptor)
            raise

    def close(self) -> None:
        os.close(self.descriptor)

    def _wait(self) -> None:
        try:
            os.waitid(os.P_PID, self._process_id, os.WEXITED | os.WNOWAIT)
            self.known = True
        except ChildProcessError:
            # Somebody else in this process reaps whatever there is.
            pass
        finally:
            os.close(self._theirs)


def child_environment(context: JobContext, inherited: Mapping[str, str]) -> dict[str, str]:
    """What a child of this run finds in its environment.

    Nothing of the executor's own settings, among which is its token.
    """
    planned_ms = round(context.planned_time.timestamp() * 1000)
    return {
        **{name: value for name, value in inherited.items() if not name.startswith(_OWN_VARIABLES)},
        "JOBWHEEL_JOB_ID": str(context.job_id),
        "JOBWHEEL_LOG_ID": str(context.log_id),
        "JOBWHEEL_PLANNED_TIME": instant_text(planned_ms),
        "JOBWHEEL_SHARD_INDEX": str(context.shard_index),
        "JOBWHEEL_SHARD_TOTAL": str(context.shard_total),
    }


def _signal_group(leader: int, number: signal.Signals) -> bool:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return True


def _outcome(code: int) -> Outcome:
    if code == 0:
        return Outcome(SUCCESS)
    if code > 0:
        return Outcome(FAILURE, f"exit code {code}")
    return Outcome(FAILURE, f"ended by the signal {_signal_name(-code)}")


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({number})"
    except ValueError:
        return str(number)
