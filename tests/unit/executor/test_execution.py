import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from jobwheel import JobContext
from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.context import current_run_log
from jobwheel.executor.errors import NotInJobError
from jobwheel.executor.execution import MOST_MESSAGE_BYTES, JobRunner, storable
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.log_capture import LogCapture
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.messages import Parent, Result, TriggerRequest

Run = Callable[..., tuple[Result, str]]


class Bench:
    """Runs handlers as a worker does, in a thread of its own, and keeps the result."""

    def __init__(self, folder: Path) -> None:
        self.results: list[Result] = []
        self.runner = JobRunner(self.results.append)
        self._folder = RunLogFolder(folder, FakeClock())
        self._loop = HandlerLoop("test")

    def accept(self, function: Callable[..., Any], **fields: Any) -> AcceptedRun:
        table = HandlerTable()
        table.register("x", function)
        handler = table.get("x")
        assert handler is not None
        request = TriggerRequest(**{"job_id": 7, "log_id": 1, "log_date_time": 1_700_000_000_000, **fields})
        return AcceptedRun(request, handler, self._folder.create(request.log_id, request.log_date_time))

    def run(self, function: Callable[..., Any], **fields: Any) -> tuple[Result, str]:
        accepted = self.accept(function, **fields)
        thread = threading.Thread(target=self._run, args=(accepted,))
        thread.start()
        thread.join()
        return self.results[-1], Path(accepted.run_log.path).read_text()

    def _run(self, accepted: AcceptedRun) -> None:
        self.runner.run_one(accepted, self._loop)
        self._loop.close()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize(
    ("value", "message"),
    [(None, None), ("text", "text"), ("", ""), (7, "7"), ({"a": [1, "中"]}, '{"a":[1,"中"]}'), (True, "true")],
)
def test_what_a_handler_returns_is_the_message(bench: Bench, value: object, message: str | None) -> None:
    async def later() -> object:
        return value

    for function in (lambda: value, later):
        result, log = bench.run(function)
        assert (result.code, result.message) == (200, message)
        assert "end: code 200" in log


def test_a_value_that_is_no_json_is_shown_as_text(bench: Bench) -> None:
    assert bench.run(lambda: range(3))[0].message == "range(0, 3)"


def test_an_exception_fails_the_run_with_its_last_line_and_the_traceback_in_the_log(bench: Bench) -> None:
    def broken() -> None:
        raise ValueError("no such account\nsecond line")

    async def broken_later() -> None:
        raise ValueError("no such account\nsecond line")

    for log_id, function in enumerate((broken, broken_later)):
        result, log = bench.run(function, log_id=log_id)
        assert (result.code, result.message) == (500, "second line")
        assert "Traceback" in log
        assert "ValueError: no such account" in log
        assert function.__name__ in log
        assert log.count('File "') == 1
        assert "[ERROR] end: code 500" in log


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_not_even_an_exit_ends_the_worker(bench: Bench, error: BaseException) -> None:
    def leave() -> None:
        raise error

    async def leave_later() -> None:
        raise error

    for function in (leave, leave_later):
        result, _ = bench.run(function)
        assert result.code == 500
        assert type(error).__name__ in (result.message or "")


def test_a_value_that_cannot_be_shown_fails_the_run(bench: Bench) -> None:
    class Unshowable:
        def __str__(self) -> str:
            raise LookupError("no words")

    result, _ = bench.run(Unshowable)
    assert (result.code, result.message) == (500, "LookupError: no words")


def test_a_message_that_is_no_text_is_made_one(bench: Bench) -> None:
    def fails(ctx: Any) -> None:
        ctx.fail(ValueError("bad"))

    assert bench.run(fails)[0].message == "bad"


def test_a_disk_that_refuses_the_log_does_not_fail_the_run(bench: Bench) -> None:
    def handler(ctx: JobContext) -> str:
        ctx.log.info("lost")
        logging.getLogger("tests").warning("lost")
        return "done"

    run = bench.accept(handler)
    run.run_log.park()
    Path(run.run_log.path).unlink()
    Path(run.run_log.path).mkdir()
    capture = LogCapture(current_run_log)
    capture.install()
    bench.runner.run_one(run, HandlerLoop("test"))
    capture.remove()
    assert bench.results[-1].message == "done"


def test_fail_and_succeed_set_the_result_whatever_is_returned(bench: Bench) -> None:
    def fails(ctx: JobContext) -> str:
        ctx.succeed("early")
        ctx.fail("not enough")
        return "fine"

    def succeeds(ctx: JobContext) -> str:
        ctx.succeed()
        return "ignored"

    assert (bench.run(fails)[0].code, bench.run(fails)[0].message) == (500, "not enough")
    assert (bench.run(succeeds)[0].code, bench.run(succeeds)[0].message) == (200, None)


def test_a_handler_may_say_that_it_timed_out(bench: Bench) -> None:
    def gives_up(ctx: JobContext) -> str:
        ctx.time_out("the bank did not answer")
        return "ignored"

    result, _ = bench.run(gives_up)
    assert (result.code, result.message) == (502, "the bank did not answer")


def test_a_child_knows_its_parent(bench: Bench) -> None:
    def handler(ctx: JobContext) -> list[object]:
        return [ctx.parent and ctx.parent.log_id, ctx.parent and ctx.parent.message]

    assert bench.run(handler)[0].message == "[null,null]"
    assert bench.run(handler, parent=Parent(41, "all written"))[0].message == '[41,"all written"]'
    assert bench.run(handler, parent=Parent(41))[0].message == "[41,null]"


def test_bind_takes_the_run_into_threads_and_pools(bench: Bench) -> None:
    together = threading.Barrier(4, timeout=5)

    def part(number: int, *, factor: int = 1) -> int:
        together.wait()
        return JobContext.current().log_id * number * factor

    def handler(ctx: JobContext) -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(ctx.bind(part), range(4)))

    assert bench.run(handler, log_id=5)[0].message == "[0,5,10,15]"


def test_bind_works_where_the_run_is_not_known(bench: Bench) -> None:
    def handler(ctx: JobContext) -> list[int]:
        seen: list[int] = []

        def elsewhere() -> None:
            seen.append(ctx.bind(lambda: JobContext.current().log_id)())

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return seen

    assert bench.run(handler, log_id=6)[0].message == "[6]"


def test_progress_is_passed_on_within_its_bounds(bench: Bench) -> None:
    reported: list[tuple[int, float, str]] = []
    bench.runner = JobRunner(bench.results.append, report_progress=lambda *what: reported.append(what))

    def handler(ctx: JobContext) -> None:
        ctx.progress(0.4, "four of ten")
        ctx.progress(1.5)
        ctx.progress(-1)
        ctx.progress(float("nan"))

    assert bench.run(handler, log_id=8)[0].code == 200
    assert reported == [(8, 0.4, "four of ten"), (8, 1.0, ""), (8, 0.0, ""), (8, 0.0, "")]


def test_an_exception_after_succeed_fails_the_run(bench: Bench) -> None:
    def broken(ctx: JobContext) -> None:
        ctx.succeed("early")
        raise OSError("late")

    assert bench.run(broken)[0] == Result(1, 1_700_000_000_000, 500, "OSError: late")


def test_the_context_tells_the_run(bench: Bench) -> None:
    def handler(ctx: JobContext) -> list[object]:
        return [
            ctx.job_id,
            ctx.log_id,
            ctx.parameter,
            ctx.shard_index,
            ctx.shard_total,
            ctx.attempt,
            ctx.trigger_type,
            ctx.planned_time.isoformat(),
            ctx.trigger_time.isoformat(),
            ctx.log_path.name,
        ]

    plain = bench.run(handler)[0].message
    assert plain == ('[7,1,"",0,1,1,null,"2023-11-14T22:13:20+00:00","2023-11-14T22:13:20+00:00","1.log"]')
    full = bench.run(
        handler,
        executor_params="p",
        broadcast_index=2,
        broadcast_total=3,
        attempt=4,
        trigger_type="RETRY",
        scheduled_time=1_699_999_999_500,
    )[0].message
    assert full == ('[7,1,"p",2,3,4,"RETRY","2023-11-14T22:13:19.500000+00:00","2023-11-14T22:13:20+00:00","1.log"]')


def test_current_is_known_below_the_handler_and_nowhere_else(bench: Bench) -> None:
    def in_thread() -> int:
        seen: list[int] = []
        context = contextvars.copy_context()
        thread = threading.Thread(target=lambda: seen.append(context.run(JobContext.current).log_id))
        thread.start()
        thread.join()
        return seen[0]

    async def in_tasks() -> list[int]:
        async def inner() -> int:
            return JobContext.current().log_id

        return [await asyncio.create_task(inner()), await asyncio.to_thread(lambda: JobContext.current().log_id)]

    assert bench.run(lambda: JobContext.current().log_id, log_id=5)[0].message == "5"
    assert bench.run(in_thread, log_id=6)[0].message == "6"
    assert bench.run(in_tasks, log_id=7)[0].message == "[7,7]"
    with pytest.raises(NotInJobError):
        JobContext.current()


def test_what_a_handler_sets_is_not_seen_by_the_next_run(bench: Bench) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)

    def sets() -> int:
        seen = variable.get()
        variable.set(9)
        return seen

    loop = HandlerLoop("test")
    for _ in range(2):
        bench.runner.run_one(bench.accept(sets), loop)
    assert [result.message for result in bench.results] == ["0", "0"]


def test_tasks_left_behind_are_cancelled(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    ended: list[str] = []

    async def leaves() -> str:
        async def endless() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")

        task = asyncio.create_task(endless())
        await asyncio.wait({task}, timeout=0)
        return "done"

    assert bench.run(leaves)[0].message == "done"
    assert ended == ["cancelled"]
    assert "job.tasks_left_behind" in caplog.text


def test_an_awaitable_that_is_no_coroutine_is_awaited(bench: Bench) -> None:
    class Later:
        def __await__(self) -> Any:
            yield from asyncio.sleep(0).__await__()  # noqa: TID251 - a turn of the loop
            return "awaited"

    assert bench.run(Later)[0].message == "awaited"


def test_a_run_is_settled_once(bench: Bench) -> None:
    run = bench.accept(lambda: bench.runner.give_up(run, Outcome(500, "the executor stopped")))
    bench.runner.run_one(run, HandlerLoop("test"))
    assert [(result.code, result.message) for result in bench.results] == [(500, "the executor stopped")]
    log = Path(run.run_log.path).read_text()
    assert log.count("end: code") == 1


def test_the_log_is_complete_before_the_result_is_settled(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    seen: list[str] = []
    run = bench.accept(lambda: "done")
    bench.runner = JobRunner(lambda result: seen.append(Path(run.run_log.path).read_text()))
    bench.runner.run_one(run, HandlerLoop("test"))
    assert "end: code 200, message: done" in seen[0]


@pytest.mark.parametrize("text", ["", "short", "中文", "x" * MOST_MESSAGE_BYTES])
def test_messages_that_fit_stay_as_they_are(text: str) -> None:
    assert storable(text) == text


@pytest.mark.parametrize("text", ["x" * 200_000, "中" * 30_000, "\U0001f600" * 20_000])
def test_long_messages_are_cut_with_a_mark(text: str) -> None:
    cut = storable(text)
    assert len(cut.encode()) <= MOST_MESSAGE_BYTES
    assert len(cut.encode()) > MOST_MESSAGE_BYTES - 10
    assert cut.endswith(" … (cut here)")
    assert text.startswith(cut.removesuffix(" … (cut here)"))


def test_lone_surrogates_do_not_break_the_message() -> None:
    assert storable("a\ud800b") == "a\\ud800b"
