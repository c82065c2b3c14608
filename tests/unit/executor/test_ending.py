"""Runs that are ended from outside: by themselves if they can, by force if they must, reported in any case."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel import JobContext
from jobwheel.executor.accepted_run import AcceptedRun
from jobwheel.executor.execution import JobRunner
from jobwheel.executor.handler_loop import HandlerLoop
from jobwheel.executor.handler_table import HandlerTable
from jobwheel.executor.invocation import Outcome
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.executor.thread_kill import RunKilled
from jobwheel.kernel.clock import SystemClock
from jobwheel.wire.messages import Result, TriggerRequest
from tests.support.recording_admin import wait_until
from tests.support.refused_threads import refused_threads

ENDING = Outcome(500, "ended by the test")


class Bench:
    """Runs a handler in a thread of its own and lets the test end it."""

    def __init__(self, folder: Path, grace_s: float) -> None:
        self.results: list[Result] = []
        self.left_alone: list[AcceptedRun] = []
        self.runner = JobRunner(self.results.append, SystemClock(), grace_s)
        self.runner.on_left_alone = self.left_alone.append
        self._folder = RunLogFolder(folder, SystemClock())
        self.threads: list[threading.Thread] = []

    def begin(self, function: Callable[..., Any], **fields: Any) -> AcceptedRun:
        table = HandlerTable()
        table.register("x", function)
        handler = table.get("x")
        assert handler is not None
        request = TriggerRequest(**{"job_id": 7, "log_id": 1, "log_date_time": 1_700_000_000_000, **fields})
        run = AcceptedRun(request, handler, self._folder.create(request.log_id, request.log_date_time))
        self.threads.append(threading.Thread(target=self._run, args=(run,)))
        return run

    def start(self, function: Callable[..., Any], **fields: Any) -> AcceptedRun:
        run = self.begin(function, **fields)
        self.threads[-1].start()
        return run

    def _run(self, run: AcceptedRun) -> None:
        loop = HandlerLoop("test")
        self.runner.run_one(run, loop)
        loop.close()

    def result(self) -> Result:
        wait_until(lambda: bool(self.results))
        return self.results[0]

    def log(self, run: AcceptedRun) -> str:
        return Path(run.run_log.path).read_text()


MakeBench = Callable[[float], Bench]


@pytest.fixture
def make_bench(tmp_path: Path) -> Iterator[MakeBench]:
    benches: list[Bench] = []

    def make(grace_s: float) -> Bench:
        benches.append(Bench(tmp_path, grace_s))
        return benches[-1]

    yield make
    for bench in benches:
        for thread in bench.threads:
            thread.join(8)
            assert not thread.is_alive()
        bench.runner.close()


def test_a_run_is_asked_to_end_also_without_a_thread_that_could_force_it(make_bench: MakeBench) -> None:
    bench, inside = make_bench(60), threading.Event()

    def looks(ctx: JobContext) -> bool:
        inside.set()
        return ctx.wait_cancelled(8)

    run = bench.start(looks)
    assert inside.wait(5)
    with refused_threads():
        bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    assert "the handler ended with code 200, message: true" in bench.log(run)


def test_a_handler_that_looks_ends_by_itself(make_bench: MakeBench) -> None:
    bench, inside = make_bench(60), threading.Event()

    def looks(ctx: JobContext) -> str:
        before = (ctx.cancelled, ctx.wait_cancelled(0))
        inside.set()
        return f"{before} {ctx.wait_cancelled(8)} {ctx.cancelled}"

    run = bench.start(looks)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert (bench.result().code, bench.result().message) == (500, "ended by the test")
    log = bench.log(run)
    assert "asked to end: ended by the test" in log
    assert "the handler ended with code 200, message: (False, False) True True" in log
    assert log.rstrip().endswith("end: code 500, message: ended by the test")
    assert bench.left_alone == []


def test_a_handler_that_never_looks_is_ended_by_force(make_bench: MakeBench) -> None:
    bench, inside, tidied = make_bench(0.5), threading.Event(), threading.Event()

    def endless() -> None:
        inside.set()
        try:
            while True:
                pass
        finally:
            tidied.set()

    run = bench.start(endless)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    bench.threads[0].join(5)
    assert tidied.is_set()
    log = bench.log(run)
    assert "ended by force" in log
    assert "the handler was here\nTraceback" in log
    assert "in endless" in log


def test_a_handler_that_nothing_ends_is_reported_and_left_alone(make_bench: MakeBench) -> None:
    bench, inside, go = make_bench(0.2), threading.Event(), threading.Event()

    def stubborn() -> str:
        inside.set()
        while not go.is_set():
            with contextlib.suppress(BaseException):
                go.wait(8)
        return "at last"

    run = bench.start(stubborn)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    wait_until(lambda: bench.left_alone == [run])
    assert bench.threads[0].is_alive()
    log = bench.log(run)
    assert "its thread is left to itself" in log
    assert "it is here\n  File" in log
    assert "in stubborn" in log
    # Whose handler it is, and not how it is called.
    assert "_carry_out" not in log
    assert log.rstrip().endswith("end: code 500, message: ended by the test")
    go.set()
    bench.threads[0].join(8)
    assert len(bench.results) == 1
    assert bench.log(run) == log


@pytest.mark.parametrize("grace_s", [0.2, 60])
def test_an_async_handler_is_cancelled(make_bench: MakeBench, grace_s: float) -> None:
    """With much time a second after it was asked, else by force."""
    bench, inside, tidied = make_bench(grace_s), threading.Event(), threading.Event()

    async def waits(ctx: JobContext) -> None:
        inside.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            assert ctx.cancelled
            tidied.set()
            raise

    run = bench.start(waits)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    assert tidied.is_set()
    assert bench.left_alone == []
    assert "in waits" in bench.log(run)


def test_an_async_handler_may_end_by_itself_before_it_is_cancelled(make_bench: MakeBench) -> None:
    bench, inside, ended = make_bench(60), threading.Event(), threading.Event()

    async def looks(ctx: JobContext) -> None:
        inside.set()
        await asyncio.to_thread(ctx.wait_cancelled)
        ended.set()

    run = bench.start(looks)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    assert ended.is_set()


@pytest.mark.parametrize("kind", ["spins", "swallows"])
def test_an_async_handler_that_no_cancellation_reaches_is_ended_by_force(make_bench: MakeBench, kind: str) -> None:
    bench, inside = make_bench(1.6 if kind == "swallows" else 0.3), threading.Event()
    killed = threading.Event()

    async def spins() -> None:
        inside.set()
        while True:
            pass

    async def swallows() -> None:
        inside.set()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            while True:
                pass
        except RunKilled:
            killed.set()
            raise

    run = bench.start(spins if kind == "spins" else swallows)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    bench.threads[0].join(8)
    assert not bench.threads[0].is_alive()
    assert killed.is_set() is (kind == "swallows")


def test_an_async_handler_that_blocks_its_loop_once_it_was_asked_to_end_is_ended_by_force(
    make_bench: MakeBench,
) -> None:
    """Its loop had reacted, so the first force is a cancellation, which never comes; the second must be another."""
    bench, inside, killed = make_bench(0.5), threading.Event(), threading.Event()

    async def blocks(ctx: JobContext) -> None:
        reacted = asyncio.Event()
        inside.set()
        await asyncio.to_thread(ctx.wait_cancelled)
        # It comes after what was asked of the loop meanwhile.
        asyncio.get_running_loop().call_later(0.05, reacted.set)
        await reacted.wait()
        try:
            while True:
                pass
        except RunKilled:
            killed.set()
            raise

    run = bench.start(blocks)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    bench.threads[0].join(5)
    assert killed.is_set()
    assert bench.result().message == "ended by the test"


def test_an_async_handler_that_waits_on_after_its_cancellation_is_ended_by_force(make_bench: MakeBench) -> None:
    """Its loop waits in the system, where nothing is raised until it is woken."""
    bench, inside = make_bench(2), threading.Event()

    async def waits_on() -> None:
        inside.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()

    run = bench.start(waits_on)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    bench.threads[0].join(8)
    assert not bench.threads[0].is_alive()
    assert bench.result().message == "ended by the test"


def test_an_async_handler_whose_tasks_do_not_end_is_ended_by_force(make_bench: MakeBench) -> None:
    bench, inside = make_bench(0.3), threading.Event()

    async def endless() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        inside.set()
        await asyncio.Event().wait()

    async def leaves_it_behind() -> None:
        task = asyncio.create_task(endless())
        await asyncio.wait({task}, timeout=0.001)

    run = bench.start(leaves_it_behind)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    bench.threads[0].join(5)
    assert not bench.threads[0].is_alive()
    assert bench.left_alone == []


def test_a_run_ends_once_with_the_first_that_ended_it(make_bench: MakeBench) -> None:
    bench, inside, go = make_bench(60), threading.Event(), threading.Event()

    def handler() -> None:
        inside.set()
        assert go.wait(8)

    run = bench.start(handler)
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    bench.runner.end(run, Outcome(500, "second"))
    go.set()
    assert bench.result().message == "ended by the test"
    bench.runner.end(run, Outcome(500, "third"))
    bench.threads[0].join(5)
    assert len(bench.results) == 1


def test_a_run_that_is_ended_before_its_handler_is_called_never_calls_it(make_bench: MakeBench) -> None:
    bench, called = make_bench(60), threading.Event()
    run = bench.begin(called.set)
    bench.runner.end(run, ENDING)
    bench.threads[0].start()
    assert bench.result().message == "ended by the test"
    assert not called.is_set()


def test_a_result_that_came_first_stands(make_bench: MakeBench) -> None:
    bench = make_bench(0)
    run = bench.start(lambda: "done")
    assert bench.result().message == "done"
    bench.runner.end(run, ENDING)
    bench.threads[0].join(5)
    assert [(result.code, result.message) for result in bench.results] == [(200, "done")]


def test_a_time_out_ends_the_run_with_its_code_and_says_so(make_bench: MakeBench) -> None:
    bench = make_bench(60)
    run = bench.start(lambda ctx: ctx.wait_cancelled(8), executor_timeout=1)
    result = bench.result()
    assert (result.code, result.message) == (502, "timed out after 1 s")
    assert "end: code 502, message: timed out after 1 s" in bench.log(run)


@pytest.mark.parametrize("timeout_s", [0, -1])
def test_no_time_out_means_none(make_bench: MakeBench, timeout_s: int) -> None:
    bench = make_bench(0)
    bench.start(lambda ctx: str(ctx.wait_cancelled(1.2)), executor_timeout=timeout_s)
    assert bench.result().message == "False"


def test_whoever_is_ended_now_is_reported_and_forced_at_once(make_bench: MakeBench) -> None:
    bench, inside = make_bench(60), threading.Event()

    def endless() -> None:
        inside.set()
        while True:
            pass

    run = bench.start(endless)
    assert inside.wait(5)
    bench.runner.end_now(run, ENDING)
    assert [result.message for result in bench.results] == ["ended by the test"]
    bench.threads[0].join(5)
    assert not bench.threads[0].is_alive()
    bench.runner.end_now(run, ENDING)
    assert len(bench.results) == 1


def test_an_invocation_that_cannot_be_ended_is_reported_all_the_same(
    make_bench: MakeBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench, inside, go = make_bench(0.1), threading.Event(), threading.Event()

    class Broken:
        """What a run is carried out by, with a fault of ours."""

        name = "broken"

        def begin(self, context: JobContext, loop: HandlerLoop) -> "Broken":
            return self

        def run(self) -> Outcome:
            inside.set()
            assert go.wait(8)
            return Outcome(200)

        def stop(self) -> None:
            raise BrokenPipeError

        def kill(self) -> bool:
            raise ProcessLookupError

    run = bench.begin(lambda: None)
    run.work = Broken()
    bench.threads[0].start()
    assert inside.wait(5)
    bench.runner.end(run, ENDING)
    assert bench.result().message == "ended by the test"
    wait_until(lambda: bench.left_alone == [run])
    assert "run.cannot_be_ended" in caplog.text
    go.set()
