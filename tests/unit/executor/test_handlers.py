import functools
from collections.abc import Callable
from typing import Any

import pytest

from jobwheel import Executor, JobContext
from jobwheel.executor.errors import HandlerError
from jobwheel.executor.handlers import HandlerTable, JobHandler


def with_context(ctx: JobContext) -> str:
    return ctx.parameter


def without() -> str:
    return "x"


def with_default(ctx: JobContext | None = None) -> None: ...


def with_only_defaults(dry_run: bool = False) -> None: ...


def with_more(ctx: JobContext, other: int = 1) -> None: ...


def two(ctx: JobContext, other: int) -> None: ...


def needs_keyword(ctx: JobContext, *, other: int) -> None: ...


def takes_any(*arguments: object) -> None: ...


class Callee:
    def __call__(self, ctx: JobContext) -> None: ...

    def method(self) -> None: ...


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


@pytest.mark.parametrize("function", [two, needs_keyword, "not a function", None])
def test_what_cannot_be_called_so_is_refused(function: Any) -> None:
    table = HandlerTable()
    with pytest.raises(HandlerError, match="'x'"):
        table.register("x", function)
    assert table.names == []


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
