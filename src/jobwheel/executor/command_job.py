"""The built-in handler `commandJobHandler`: runs a program that the executor's settings allow."""

import os
import shlex
import shutil
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from jobwheel.executor.child_process import ChildProcess, Command, child_environment
from jobwheel.executor.context import JobContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Outcome
from jobwheel.kernel.clock import Clock
from jobwheel.wire.messages import FAILURE


@dataclass(frozen=True, slots=True)
class CommandWork:
    """Runs the program that the job's parameter names, with its arguments; no shell looks at them."""

    name: ClassVar[str] = "commandJobHandler"
    programs: tuple[str, ...]
    clock: Clock

    def begin(self, context: JobContext, loop: HandlerLoop) -> "CommandInvocation":  # noqa: ARG002 - the seam's
        return CommandInvocation(self, context)


class CommandInvocation:
    """One run of a program, in a process group of its own."""

    def __init__(self, work: CommandWork, context: JobContext) -> None:
        self._work = work
        self._context = context
        self._child = ChildProcess(context.run_log.write, work.clock)

    def run(self) -> Outcome:
        try:
            program, *arguments = _arguments(self._context.parameter)
        except ValueError as error:
            return Outcome(FAILURE, f"the parameter is no command: {error}")
        if program not in self._work.programs:
            allowed = ", ".join(self._work.programs)
            reason = f"{program!r} may not be run here; the executor's setting command_job_programs allows {allowed}"
            return Outcome(FAILURE, reason)
        found = shutil.which(program)
        if found is None:
            return Outcome(FAILURE, f"{program} is not on this executor, or cannot be executed: install it there")
        try:
            return self._child.run(Command((found, *arguments), child_environment(self._context, os.environ)))
        except (OSError, ValueError) as error:
            return Outcome(FAILURE, f"{program} cannot be run: {error}")

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> bool:
        return self._child.kill()


def _arguments(parameter: str) -> list[str]:
    """A list in JSON, or words as a shell would part them; nothing in them is replaced by anything.

    Raises:
        ValueError: neither, or empty; says what is wrong.
    """
    if parameter.lstrip().startswith("["):
        try:
            arguments = msgspec.json.decode(parameter, type=list[str])
        except msgspec.DecodeError as error:
            raise ValueError(f"as a JSON list of texts: {error}") from error
    else:
        arguments = shlex.split(parameter)
    if not arguments:
        raise ValueError('it is empty; give a program with its arguments, such as ["rsync", "-a", "from/", "to/"]')
    return arguments
