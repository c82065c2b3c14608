"""Finding and running the executor that `module:executor` names."""

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from jobwheel import Executor
from jobwheel.cli.errors import TargetError
from jobwheel.cli.lifeline import stop_when_stdin_ends
from jobwheel.cli.reload import run_with_reload


def run_target(target: str, folder: Path, *, reload: bool, stop_on_stdin_end: bool) -> int:
    """Run an executor until a signal; return the exit code.

    Args:
        target: `module:name`.
        folder: where the module is looked for first.
        reload: run it in a process that is started anew when a `.py` file below the folder changes.
        stop_on_stdin_end: stop when standard input ends, too: who started this is gone.

    Raises:
        JobwheelError: it cannot be found, or cannot start.
    """
    if reload:
        # -P: the folder is no place to find our modules, or the library's, in.
        program = (sys.executable, "-P", "-m", "jobwheel", "executor", target, "--stop-on-stdin-end")
        return run_with_reload(program, folder)
    if stop_on_stdin_end:
        stop_when_stdin_ends()
    load_executor(target, folder).run()
    return 0


def load_executor(target: str, folder: Path) -> Executor:
    """The executor of `module:name`; the module is looked for in `folder` first, which stays on `sys.path`.

    Raises:
        TargetError: there is no such module or name, it is no executor, or the module does not load.
    """
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name.isidentifier()):
        raise TargetError(target, "is not of the form module:executor, such as myapp.jobs:executor")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    module = _import(target, module_name, folder)
    try:
        found = getattr(module, name)
    except AttributeError:
        raise TargetError(target, f"the module {module_name} has no {name!r}{_executors_of(module)}") from None
    if not isinstance(found, Executor):
        raise TargetError(target, f"is a {type(found).__name__}, not a jobwheel.Executor{_executors_of(module)}")
    return found


def _import(target: str, module_name: str, folder: Path) -> ModuleType:
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            problem = f"there is no module {error.name!r} in {folder} nor among the installed packages"
            raise TargetError(target, problem) from error
        raise TargetError(target, _what_failed(module_name, error)) from error
    except Exception as error:
        # The module is the user's code: whatever it raises is told in a line, as any other mistake in the target.
        raise TargetError(target, _what_failed(module_name, error)) from error


def _what_failed(module_name: str, error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
    return f"the module {module_name} cannot be imported: {type(error).__name__}: {error}{where}"


def _executors_of(module: ModuleType) -> str:
    names = sorted(name for name, value in vars(module).items() if isinstance(value, Executor))
    return f"; it has {', '.join(names)}" if names else "; it has no executor at all"
