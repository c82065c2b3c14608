"""Which handlers a child process can have."""

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.executor import HandlerError
from jobwheel.executor.child_setup import HandlerSource
from tests.support import process_handlers as handlers

ADVICE = "define it at the top of a module, and let executor.job be the first of its decorators"


def source(handler: Any) -> HandlerSource:
    return HandlerSource("x", handler, None, None)


def make_local() -> Callable[[], None]:
    def local() -> None: ...

    return local


def make_local_object() -> object:
    class Local:
        def execute(self) -> None: ...

    return Local()


@pytest.mark.parametrize(
    ("handler", "what"),
    [
        (lambda: None, "<lambda> has no name in its module"),
        (make_local(), "make_local.<locals>.local has no name"),
        (make_local_object(), "make_local_object.<locals>.Local has no name"),
    ],
)
def test_what_has_no_name_in_its_module_is_refused_when_it_is_registered(handler: Any, what: str) -> None:
    executor = Executor(port=0)
    with pytest.raises(HandlerError, match=f"'x': a child process cannot import it: {what}.*; {ADVICE}"):
        executor.register("x", handler, isolation="process")
    executor.register("x", handler)
    assert executor.handlers == ["x"]


def test_hooks_need_a_name_as_well() -> None:
    with pytest.raises(HandlerError, match="<lambda> has no name"):
        Executor(port=0).register("x", handlers.process_id, isolation="process", destroy=lambda: None)


def covered(ctx: JobContext) -> None: ...


registered = covered


def decorated(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapper(*arguments: Any) -> None:
        function(*arguments)

    return wrapper


covered = decorated(covered)


@pytest.mark.parametrize(
    ("handler", "what"),
    [
        (registered, "it's not the same object as .*covered"),
        (handlers.Unpicklable(), "cannot pickle '_thread.lock' object"),
        (functools.partial(registered), "it's not the same object"),
    ],
)
def test_what_a_child_could_not_import_stops_the_start(handler: Any, what: str) -> None:
    executor = Executor(port=0)
    executor.register("x", handler, isolation="process")
    with pytest.raises(HandlerError, match=f"'x': a child process cannot import it: .*{what}.*; {ADVICE}"):
        executor.start_in_background()
    assert not executor.started


@pytest.mark.parametrize(
    "handler", [covered, handlers.Counting(), handlers.Counting().execute, functools.partial(handlers.echo)]
)
def test_what_has_a_name_can_be_had_by_a_child(handler: Any) -> None:
    setup = source(handler).setup()
    assert setup.program == {}
    assert setup.sys_path == sys.path


@pytest.mark.parametrize(
    ("main", "program"),
    [
        ({"__file__": "/srv/app.py"}, {"init_main_from_path": "/srv/app.py"}),
        ({"__spec__": types.SimpleNamespace(name="app.run")}, {"init_main_from_name": "app.run"}),
    ],
)
def test_a_program_is_imported_if_the_handler_is_in_it(
    monkeypatch: pytest.MonkeyPatch, main: dict[str, Any], program: dict[str, str]
) -> None:
    handler = in_main(monkeypatch, main)
    assert source(handler).setup().program == program


def test_a_program_that_is_no_file_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    handler = in_main(monkeypatch, {})
    with pytest.raises(HandlerError, match="the program that defines it is no file"):
        source(handler).setup()


def in_main(monkeypatch: pytest.MonkeyPatch, names: dict[str, Any]) -> Callable[[], None]:
    """A function of a main module that has these names."""
    module = types.ModuleType("__main__")
    module.__dict__.update(names)

    def work() -> None: ...

    work.__module__, work.__qualname__ = "__main__", "work"
    module.__dict__["work"] = work
    monkeypatch.setitem(sys.modules, "__main__", module)
    return work
