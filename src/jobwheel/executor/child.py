"""`python -m jobwheel.executor.child`: the process in which a worker's handler runs. Its executor starts it."""

import contextvars
import faulthandler
import logging
import os
import queue
import signal
import sys
import threading
from typing import Final

from jobwheel.executor.child_messages import READ_COMMAND, Began, Begin, Command, Ended, Messages, Progress, Setup, Stop
from jobwheel.executor.child_output import STANDARD_ERROR, ChildLog, EventPipe, Printing, Send
from jobwheel.executor.child_setup import load
from jobwheel.executor.context import JobContext, current_run_log
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_table import job_handler
from jobwheel.executor.handlers import HandlerCall, JobHandler
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.lifeline import tie
from jobwheel.executor.log_capture import LogCapture
from jobwheel.executor.tracebacks import last_line_of, traceback_of
from jobwheel.wire.messages import FAILURE

_CHUNK_BYTES: Final = 65_536


class Calls:
    """The call under way, for who wants to stop it from another thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: HandlerCall | None = None
        self._to_stop: int | None = None

    def begin(self, call: HandlerCall) -> None:
        with self._lock:
            self._call = call
            asked = self._to_stop == call.context.log_id
        if asked:
            call.stop()

    def end(self) -> None:
        with self._lock:
            self._call = None

    def stop(self, log_id: int) -> None:
        """Stop the call of this run, also one that has not begun yet."""
        with self._lock:
            self._to_stop = log_id
            call = self._call
        if call is not None and call.context.log_id == log_id:
            call.stop()


class Child:
    """Runs the handler, in the main thread, as often as it is told to."""

    def __init__(self, send: Send, calls: Calls, printing: Printing) -> None:
        self._send = send
        self._calls = calls
        self._printing = printing
        self._loop = HandlerLoop("child")

    def serve(self, commands: "queue.SimpleQueue[Command]") -> None:
        """Do what is told, up to the command to leave."""
        setup, command = commands.get(), commands.get()
        assert isinstance(setup, Setup)
        handler: JobHandler | None = None
        while isinstance(command, Begin):
            handler = self._run(command, handler or setup)
            if handler is None:
                return
            command = commands.get()
        self._loop.close()

    def _run(self, begin: Begin, made_of: JobHandler | Setup) -> JobHandler | None:
        """Run the handler, which is made first if there is none yet. None: it could not be made."""
        run_log = ChildLog(begin.log_path, self._send)
        context = JobContext(begin.request, run_log, self._report_progress)
        self._send(Began())
        self._printing.turn_to(run_log)
        handler: JobHandler | None = None
        try:
            handler = made_of if isinstance(made_of, JobHandler) else _made(made_of)
            outcome = contextvars.copy_context().run(self._carry_out, handler, context)
        except BaseException as error:  # noqa: BLE001 - around user code: SystemExit and the like fail the run too
            # What it has printed comes before what it raised, also without the end of a line.
            self._printing.turn_to(run_log)
            run_log.write("ERROR", f"the handler raised an exception\n{traceback_of(error)}")
            outcome = Outcome(FAILURE, last_line_of(error))
        self._calls.end()
        self._printing.turn_to(None)
        run_log.close()
        self._send(Ended(outcome.code, outcome.message, final=handler is None))
        return handler

    def _carry_out(self, handler: JobHandler, context: JobContext) -> Outcome:
        context.enter()
        call = handler.begin(context, self._loop)
        self._calls.begin(call)
        return call.run()

    def _report_progress(self, _log_id: int, fraction: float, text: str) -> None:
        self._send(Progress(fraction, text))


def _made(setup: Setup) -> JobHandler:
    source = load(setup)
    # After the program's own set-up, as in the parent.
    LogCapture(current_run_log).install()
    _quieten_other_handlers()
    return job_handler(source)


def _quieten_other_handlers() -> None:
    """Let what the program has set up for its logging print only what is not in a run's log anyway."""
    others = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
    for handler in [*others, logging.lastResort]:
        if handler is not None:
            handler.addFilter(_is_outside_of_runs)


def _is_outside_of_runs(record: logging.LogRecord) -> bool:
    return current_run_log() is None and not getattr(record, "jobwheel_written", False)


def _listen(descriptor: int, commands: "queue.SimpleQueue[Command]", calls: Calls) -> None:
    """Take commands in. At the end of the pipe the parent is gone, and with it the reason for this process."""
    messages = Messages()
    while data := os.read(descriptor, _CHUNK_BYTES):
        for message in messages.feed(data):
            command = READ_COMMAND.decode(message)
            if isinstance(command, Stop):
                calls.stop(command.log_id)
            else:
                commands.put(command)
    os.killpg(os.getpgrp(), signal.SIGKILL)


def _standard_input() -> int:
    """Take the commands away from where a handler reads; it finds nothing there."""
    commands = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return commands


def main(events: int, lifeline: int) -> None:
    """Serve until the parent lets this process leave, or is gone."""
    for descriptor in (events, lifeline):
        # Not for what the handler starts: the parent would wait for all of them.
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - the parameter has no name
    # For a handler that never lets another thread of Python have a turn.
    tie(lifeline, os.getpgrp())
    faulthandler.enable(STANDARD_ERROR, all_threads=False)
    commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
    calls, printing = Calls(), Printing()
    printing.install()
    reader = threading.Thread(target=_listen, args=(_standard_input(), commands, calls), daemon=True)
    reader.start()
    Child(EventPipe(events).send, calls, printing).serve(commands)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
