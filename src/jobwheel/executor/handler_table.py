"""The job handlers of an executor by name, in all the forms that they may have."""

import inspect
import threading
from typing import Any, Literal, get_args

from jobwheel.executor.errors import HandlerError
from jobwheel.executor.handlers import Hook, JobHandler
from jobwheel.executor.invocation import Work
from jobwheel.executor.signatures import signature_of

Isolation = Literal["thread", "process"]


class HandlerTable:
    """The handlers by name. Safe to use from any thread."""

    def __init__(self) -> None:
        self._handlers: dict[str, Work] = {}
        self._lock = threading.Lock()

    def register(
        self,
        name: str,
        handler: Any,
        *,
        isolation: Isolation = "thread",
        init: Hook | None = None,
        destroy: Hook | None = None,
    ) -> None:
        """Add a handler.

        Raises:
            HandlerError: the name is empty or taken, or the handler cannot be called, or not in that isolation.
        """
        if not name or name != name.strip():
            raise HandlerError(name, "a name is a text that is not empty and has no spaces around it")
        if isolation not in get_args(Isolation):
            raise HandlerError(name, f"isolation is {isolation!r}, but must be one of {', '.join(get_args(Isolation))}")
        if isolation == "process":
            raise HandlerError(name, "isolation is 'process', which does not work yet")
        work = job_handler(name, handler, init, destroy)
        with self._lock:
            if name in self._handlers:
                raise HandlerError(name, "is registered already; each name stands for one handler")
            self._handlers[name] = work

    def get(self, name: str) -> Work | None:
        return self._handlers.get(name)

    @property
    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._handlers)


def job_handler(name: str, handler: Any, init: Hook | None, destroy: Hook | None) -> JobHandler:
    """A handler from a function, or from an object with `execute` that may have `init` and `destroy`.

    Raises:
        HandlerError: it is neither, or it cannot be called as handlers are.
    """
    function = handler
    if hasattr(handler, "execute"):
        if inspect.isclass(handler):
            raise HandlerError(name, f"{handler.__name__} is a class: register an object of it")
        function = handler.execute
        init = init or getattr(handler, "init", None)
        destroy = destroy or getattr(handler, "destroy", None)
    if not callable(function):
        raise HandlerError(name, f"{handler!r} is neither a function nor an object with `execute`")
    for hook_name, hook in (("init", init), ("destroy", destroy)):
        _check_hook(name, hook_name, hook)
    signature = signature_of(name, function)
    return JobHandler(name, function, signature.takes_context, signature.read, init, destroy)


def _check_hook(name: str, hook_name: str, hook: Any) -> None:
    if hook is None:
        return
    try:
        inspect.signature(hook).bind()
    except ValueError:
        # Some built-in callables have no signature; they are called with nothing.
        return
    except TypeError as error:
        raise HandlerError(name, f"{hook_name} is called with nothing, but {error}") from error
