"""Jobs whose code comes with the run: scripts, written to a file and run as a process."""

import os
import shutil
import weakref
from dataclasses import dataclass
from typing import Final

from jobwheel.executor.child_process import ChildProcess, Command, child_environment
from jobwheel.executor.context import JobContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.script_files import ScriptFiles, ScriptVersion
from jobwheel.kernel.clock import Clock
from jobwheel.wire.messages import FAILURE, TriggerRequest


@dataclass(frozen=True, slots=True)
class ScriptLanguage:
    """What runs a script: the first of the interpreters that is on the PATH, with its options before the file."""

    interpreters: tuple[str, ...]
    suffix: str
    options: tuple[str, ...] = ()
    keeps_line_ends: bool = False


LANGUAGES: Final = {
    "GLUE_SHELL": ScriptLanguage(("bash",), ".sh"),
    "GLUE_PYTHON": ScriptLanguage(("python3",), ".py"),
    "GLUE_PYTHON2": ScriptLanguage(("python",), ".py"),
    "GLUE_NODEJS": ScriptLanguage(("node",), ".js"),
    "GLUE_POWERSHELL": ScriptLanguage(("powershell", "pwsh"), ".ps1", ("-File",), keeps_line_ends=True),
    "GLUE_PHP": ScriptLanguage(("php",), ".php"),
}
"""The types of scripts that run here, by the protocol's names."""

_GROOVY: Final = "GLUE_GROOVY"


class Scripts:
    """Makes the work of runs that are scripts. Safe to use from any thread."""

    def __init__(self, files: ScriptFiles, clock: Clock, *, enabled: bool) -> None:
        self._files = files
        self._clock = clock
        self._enabled = enabled
        # Thousands of runs of one version may wait, and each request brings the whole source.
        self._versions: weakref.WeakValueDictionary[ScriptVersion, ScriptVersion] = weakref.WeakValueDictionary()

    def work(self, request: TriggerRequest) -> "ScriptWork | str":
        """The script that a run brings; a text says why it cannot run here."""
        glue_type = request.glue_type or ""
        if glue_type == _GROOVY:
            return f"glueType {_GROOVY} is Java source: it runs on Java executors alone, and this one is in Python"
        language = LANGUAGES.get(glue_type)
        if language is None:
            return f"glueType {request.glue_type} is not supported; supported: BEAN, {', '.join(LANGUAGES)}"
        if not self._enabled:
            return f"glueType {glue_type}: scripts are off on this executor; its setting scripts_enabled turns them on"
        source = request.glue_source or ""
        if not source.strip():
            return f"glueType {glue_type}: the request brings no script (glueSource is empty)"
        if not language.keeps_line_ends:
            source = source.replace("\r\n", "\n")
        version = ScriptVersion(request.job_id, request.glue_updatetime, language.suffix, source)
        return ScriptWork(glue_type, language, self._versions.setdefault(version, version), self._files, self._clock)


@dataclass(frozen=True, slots=True)
class ScriptWork:
    """A version of a script, and what it takes to run it."""

    glue_type: str
    language: ScriptLanguage
    version: ScriptVersion
    files: ScriptFiles
    clock: Clock

    @property
    def name(self) -> str:
        return f"{self.glue_type} {self.version.file_name}"

    def begin(self, context: JobContext, loop: HandlerLoop) -> "ScriptInvocation":  # noqa: ARG002 - the seam's
        return ScriptInvocation(self, context)


class ScriptInvocation:
    """One run of a script, in a process group of its own."""

    def __init__(self, work: ScriptWork, context: JobContext) -> None:
        self._work = work
        self._context = context
        self._child = ChildProcess(context.run_log.write, work.clock)

    def run(self) -> Outcome:
        work = self._work
        interpreter = _interpreter(work.language)
        if interpreter is None:
            wanted = " or ".join(work.language.interpreters)
            reason = f"{work.glue_type} needs {wanted}, which is not on this executor's PATH: install it there"
            return Outcome(FAILURE, reason)
        try:
            with work.files.held(work.version) as path:
                return self._child.run(self._command(interpreter, str(path)))
        except (OSError, ValueError) as error:
            return Outcome(FAILURE, f"the script cannot be run: {error}")

    def stop(self) -> None:
        self._child.stop()

    def kill(self) -> bool:
        return self._child.kill()

    def _command(self, interpreter: str, path: str) -> Command:
        context = self._context
        arguments = (context.parameter, str(context.shard_index), str(context.shard_total))
        return Command(
            (interpreter, *self._work.language.options, path, *arguments), child_environment(context, os.environ)
        )


def _interpreter(language: ScriptLanguage) -> str | None:
    return next((found for name in language.interpreters if (found := shutil.which(name))), None)
