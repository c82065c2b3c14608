"""How the child process of a worker gets a handler that its parent has."""

import contextvars
import multiprocessing.spawn
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jobwheel.executor.child_messages import Setup
from jobwheel.executor.errors import HandlerError, StartedInChildError
from jobwheel.executor.handlers import Hook

_MAIN: Final = "__main__"

_in_child: contextvars.ContextVar[bool] = contextvars.ContextVar("jobwheel_in_child", default=False)


@dataclass(frozen=True, slots=True)
class HandlerSource:
    """A handler as it was registered."""

    name: str
    handler: Any
    init: Hook | None
    destroy: Hook | None

    def setup(self) -> Setup:
        """What a child needs to make the handler.

        Raises:
            HandlerError: it could not import it.
        """
        try:
            pickled = pickle.dumps(self)
        except Exception as error:
            # Pickling runs code of the object's own, which may raise anything.
            raise _not_importable(self.name, str(error)) from error
        program: dict[str, str] = {}
        if _MAIN.encode() in pickled:
            program = _main_module()
            if not program:
                raise _not_importable(self.name, "the program that defines it is no file")
        return Setup([str(each) for each in sys.path], sys.argv, program, pickled)


def refuse_local(source: HandlerSource) -> None:
    """Refuse what shows before its module is whole that no other process can import it.

    Raises:
        HandlerError: a function or a class within a function, or a lambda.
    """
    for function in (source.handler, type(source.handler), source.init, source.destroy):
        qualified = getattr(function, "__qualname__", "")
        if "<" in qualified:
            raise _not_importable(source.name, f"{qualified} has no name in its module")


def _not_importable(name: str, reason: str) -> HandlerError:
    advice = "define it at the top of a module, and let executor.job be the first of its decorators"
    return HandlerError(name, f"a child process cannot import it: {reason}; {advice}")


def _main_module() -> dict[str, str]:
    main = sys.modules[_MAIN]
    module_name = getattr(getattr(main, "__spec__", None), "name", None)
    if module_name is not None:
        return {"init_main_from_name": module_name}
    path = getattr(main, "__file__", None)
    return {"init_main_from_path": str(Path(path).absolute())} if path else {}


def load(setup: Setup) -> HandlerSource:
    """In the child: import what the handler needs, as a parent that was started anew would, and make it.

    Raises:
        BaseException: whatever the import of the program or of the handler's module raises.
    """
    _in_child.set(True)
    multiprocessing.spawn.prepare({"sys_path": setup.sys_path, "sys_argv": setup.arguments, **setup.program})
    # Only what the parent has sent: its pipe is nobody else's.
    source: HandlerSource = pickle.loads(setup.handler)  # noqa: S301
    return source


def refuse_in_child() -> None:
    """Refuse to go on in a child that imports its parent's program.

    Raises:
        StartedInChildError: this is one.
    """
    if _in_child.get():
        raise StartedInChildError
