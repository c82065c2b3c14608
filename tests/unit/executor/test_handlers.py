import dataclasses
import functools
import threading
from collections.abc import Callable
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.executor.errors import HandlerError
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.handlers import JobHandler


def with_context(ctx: JobContext) -> str:
    return ctx.parameter


def without() -> str:
    return "x"


def with_default(ctx: JobContext | None = None) -> None: ...


def with_only_defaults(dry_run: bool = False) -> None: ...


def with_more(ctx: JobContext, other: int = 1) -> None: ...


def two(ctx: JobContext, other: int) -> None: ...


def three(ctx: JobContext, other: int, more: int) -> None: ...


def wrong_order(other: int, ctx: JobContext) -> None: ...


def without_type(ctx: JobContext, other) -> None: ...  # type: ignore[no-untyped-def]  # what is tested


def unreadable(ctx: JobContext, other: list[threading.Thread]) -> None: ...


def unknown_type(ctx: JobContext, other: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821 - tested


def needs_keyword(ctx: JobContext, *, other: int) -> None: ...


def takes_any(*arguments: object) -> None: ...


@dataclasses.dataclass
class Broken:
    field: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - tested


def broken_type(ctx: JobContext, other: Broken) -> None: ...


def no_type(ctx: JobContext, other: {1: 2}) -> None: ...  # type: ignore[valid-type]  # tested


def no_context(ctx: {1: 2}) -> None: ...  # type: ignore[valid-type]  # tested


class Callee:
    def __call__(self, ctx: JobContext) -> None: ...

    def method(self) -> None: ...


class Executable:
    def execute(self, ctx: JobContext) -> None: ...


@pytest.mark.parametrize(
    ("function", "takes_context"),
    [
        (with_context, True),
        (without, False),
        (with_default, False),
        (with_more, True),
        (with_only_defaults, False),
        (takes_any, True),
        (Callee(), True),
        (Callee().method, False),
        (Executable(), True),
        (functools.partial(two, other=1), True),
        (lambda: None, False),
    ],
)
def test_a_handler_takes_the_context_or_nothing(function: Callable[..., Any], takes_context: bool) -> None:
    table = HandlerTable()
    table.register("x", function)
    handler = table.get("x")
    assert isinstance(handler, JobHandler)
    assert handler.takes_context is takes_context
    assert handler.read_parameter is None


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (three, "nobody gives it more"),
        (needs_keyword, "nobody gives it other"),
        (wrong_order, "the first of its two parameters, other, must be the JobContext"),
        (without_type, "its second parameter, other, needs a type"),
        (unreadable, "the type of other does not work: JSON cannot be read into Thread"),
        (unknown_type, "the type of other, Nowhere, must be known in the module"),
        (broken_type, "the type of other does not work: name 'Nowhere' is not defined"),
        (no_type, "the type of other does not work: "),
        (no_context, "the type of ctx does not work: "),
        (Executable, "Executable is a class: register an object of it"),
        ("not a function", "neither a function nor an object"),
        (None, "neither a function nor an object"),
    ],
)
def test_what_cannot_be_called_so_is_refused(function: Any, reason: str) -> None:
    table = HandlerTable()
    with pytest.raises(HandlerError, match=f"'x': .*{reason}"):
        table.register("x", function)
    assert table.names == []


def test_a_hook_that_takes_something_is_refused() -> None:
    init: Any = with_context
    with pytest.raises(HandlerError, match=r"init is called with nothing, but missing .*'ctx'"):
        HandlerTable().register("x", without, init=init)


def test_an_unknown_isolation_is_refused() -> None:
    isolation: Any = "container"
    with pytest.raises(HandlerError, match="must be one of thread, process"):
        HandlerTable().register("x", without, isolation=isolation)


@pytest.mark.parametrize("name", ["", " ", " x", "x\n"])
def test_an_empty_name_is_refused(name: str) -> None:
    with pytest.raises(HandlerError, match="not empty"):
        HandlerTable().register(name, without)


def test_a_repeated_name_is_refused_and_the_first_stays() -> None:
    executor = Executor(port=0)
    executor.register("x", without)
    with pytest.raises(HandlerError, match="registered already"):
        executor.register("x", with_context)
    assert executor.handlers == ["x"]


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    executor = Executor(port=0)
    assert executor.job("settleAccounts")(without) is without
    assert executor.handlers == ["settleAccounts"]


def test_the_decorator_without_a_name_says_what_to_write() -> None:
    decorate: Any = Executor(port=0).job
    with pytest.raises(HandlerError, match=r'@executor.job\("name"\)'):
        decorate(without)
