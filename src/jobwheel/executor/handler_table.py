"""The job handlers of an executor by name, in all the forms that they may have."""

import inspect
import threading
from typing import Any, Literal, get_args

from jobwheel.executor.child_setup import HandlerSource, refuse_local
from jobwheel.executor.errors import HandlerError
from jobwheel.executor.handlers import Hook, JobHandler
from jobwheel.executor.invocation import Work
from jobwheel.executor.process_call import ProcessHandler
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
        source = HandlerSource(name, handler, init, destroy)
        work: Work = job_handler(source)
        if isolation == "process":
            refuse_local(source)
            work = ProcessHandler(source)
        self.add(work)

    def add(self, work: Work) -> None:
        """Add what is to be carried out under its name.

        Raises:
            HandlerError: the name is taken.
        """
        with self._lock:
            if work.name in self._handlers:
                raise HandlerError(work.name, "is registered already; each name stands for one handler")
            self._handlers[work.name] = work

    def check(self) -> None:
        """See whether each handler can run where it is meant to, now that all modules are whole.

        Raises:
            HandlerError: a child process could not import one.
        """
        with self._lock:
            works = list(self._handlers.values())
        for work in works:
            if isinstance(work, ProcessHandler):
                work.source.setup()

    def get(self, name: str) -> Work | None:
        return self._handlers.get(name)

    @property
    def names(self) -> list[str]:
        with self._lock:
            return sorted(self._handlers)


def job_handler(source: HandlerSource) -> JobHandler:
    """A handler from a function, or from an object with `execute` that may have `init` and `destroy`.

    Raises:
        HandlerError: it is neither, or it cannot be called as handlers are.
    """
    name, function, init, destroy = source.name, source.handler, source.init, source.destroy
    if hasattr(source.handler, "execute"):
        if inspect.isclass(source.handler):
            raise HandlerError(name, f"{source.handler.__name__} is a class: register an object of it")
        function = source.handler.execute
        init = init or getattr(source.handler, "init", None)
        destroy = destroy or getattr(source.handler, "destroy", None)
    if not callable(function):
        raise HandlerError(name, f"{function!r} is neither a function nor an object with `execute`")
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
