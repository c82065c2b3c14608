"""Typed parameters, as a run meets them."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pydantic
import pytest

from jobwheel import JobContext
from jobwheel.executor.context import JobContext as SameContext
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.messages import TriggerRequest

if TYPE_CHECKING:
    from jobwheel.executor import context as for_checkers_only


@dataclasses.dataclass
class Line:
    article: int
    amounts: list[int] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Order:
    day: str = "today"
    lines: list[Line] = dataclasses.field(default_factory=list)


class Range(msgspec.Struct, forbid_unknown_fields=True):
    first: int
    last: int = 9


class Page(pydantic.BaseModel):
    url: str = pydantic.Field(min_length=3)
    depth: int = 1


Call = Callable[[Callable[..., Any], str], Outcome]


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Registers a handler and carries one run with the parameter out."""

    def run(function: Callable[..., Any], parameter: str) -> Outcome:
        table = HandlerTable()
        table.register("x", function)
        work = table.get("x")
        assert work is not None
        run_log = RunLogFolder(tmp_path, FakeClock()).create(1, 0)
        request = TriggerRequest(job_id=7, log_id=1, executor_params=parameter)
        loop = HandlerLoop("test")
        try:
            return work.begin(JobContext(request, run_log), loop).run()
        finally:
            run_log.close()
            loop.close()

    return run


def order(ctx: JobContext, order: Order) -> str:
    return f"{ctx.job_id} {order}"


def only_a_struct(numbers: Range) -> str:
    return repr(numbers)


async def page(ctx: JobContext, page: Page) -> str:
    return repr(page)


def raw(ctx: JobContext, text: str) -> str:
    return f"<{text}>"


def as_text(ctx: "JobContext", numbers: "Range") -> str:
    return repr(numbers)


def context_for_checkers_only(ctx: "for_checkers_only.JobContext") -> str:
    return ctx.parameter


def number(number: int) -> int:
    return number + 1


def anything(ctx: Any, given: dict[str, Any]) -> str:
    return f"{sorted(given)}"


@pytest.mark.parametrize(
    ("function", "parameter", "message"),
    [
        (
            order,
            '{"day": "friday", "lines": [{"article": 3, "amounts": [1]}]}',
            "7 Order(day='friday', lines=[Line(article=3, amounts=[1])])",
        ),
        (order, "", "7 Order(day='today', lines=[])"),
        (order, " \n", "7 Order(day='today', lines=[])"),
        (only_a_struct, '{"first": 1}', "Range(first=1, last=9)"),
        (as_text, '{"first": 1}', "Range(first=1, last=9)"),
        (page, '{"url": "abc", "depth": 2}', "Page(url='abc', depth=2)"),
        (raw, '{"first": 1}', '<{"first": 1}>'),
        (raw, "", "<>"),
        (context_for_checkers_only, "p", "p"),
        (number, "41", "42"),
        (anything, '{"b": 1, "a": []}', "['a', 'b']"),
    ],
)
def test_the_handler_gets_what_it_declares(
    call: Call, function: Callable[..., Any], parameter: str, message: str
) -> None:
    assert call(function, parameter) == Outcome(200, message)


@pytest.mark.parametrize(
    ("function", "parameter", "reason"),
    [
        (order, '{"lines": [{"article": 1}, {"article": "one"}]}', "lines[1].article: expected int, got str"),
        (order, '{"lines": [{}]}', "lines[0].article: is missing"),
        (order, "day=friday", "it must be JSON (JSON is malformed: invalid character (byte 0))"),
        (order, "[1]", "expected object, got array"),
        (anything, '{"a": ' + "[" * 100_000, "it must be JSON"),
        (order, '{"day": "\ud800"}', "it must be JSON"),
        (only_a_struct, "", "first: is missing (the parameter is empty)"),
        (only_a_struct, '{"first": 1, "frist": 2}', "object contains unknown field frist"),
        (number, "", "expected int, got object (the parameter is empty)"),
        (
            page,
            '{"url": "a", "depth": "deep"}',
            "url: String should have at least 3 characters; depth: Input should be",
        ),
        (page, "", "url: Field required (the parameter is empty)"),
        (page, "no JSON", "Invalid JSON"),
    ],
)
def test_a_bad_parameter_fails_the_run_and_names_the_field(
    call: Call, function: Callable[..., Any], parameter: str, reason: str
) -> None:
    outcome = call(function, parameter)
    assert outcome.code == 500
    assert outcome.message is not None
    assert outcome.message.startswith("the job's parameter does not fit its handler: ")
    assert reason in outcome.message


def test_nothing_of_the_handler_runs_with_a_bad_parameter(tmp_path: Path) -> None:
    called: list[str] = []

    class Handler:
        def init(self) -> None:
            called.append("init")

        def execute(self, ctx: SameContext, numbers: Range) -> None:
            called.append("execute")

    table = HandlerTable()
    table.register("x", Handler())
    work = table.get("x")
    assert work is not None
    run_log = RunLogFolder(tmp_path, FakeClock()).create(1, 0)
    context = JobContext(TriggerRequest(job_id=7, log_id=1, executor_params="{}"), run_log)
    assert work.begin(context, HandlerLoop("test")).run().code == 500
    run_log.close()
    assert called == []
