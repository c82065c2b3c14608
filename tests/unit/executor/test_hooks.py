"""`init` and `destroy` of a handler, as its worker calls them."""

import asyncio
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
from jobwheel.executor.run_log import RunLogFolder
from jobwheel.kernel.fake_clock import FakeClock
from jobwheel.wire.messages import Result, TriggerRequest


class Bench:
    """One worker: runs handlers one after the other, and ends."""

    def __init__(self, folder: Path) -> None:
        self.table = HandlerTable()
        self.results: list[Result] = []
        self.loop = HandlerLoop("test")
        self._runner = JobRunner(self.results.append)
        self._folder = RunLogFolder(folder, FakeClock())

    def run(self, name: str) -> str:
        """Run the handler, and return the run's log."""
        work = self.table.get(name)
        assert work is not None
        request = TriggerRequest(job_id=7, log_id=len(self.results), log_date_time=0)
        accepted = AcceptedRun(request, work, self._folder.create(request.log_id, 0))
        self._runner.run_one(accepted, self.loop)
        return Path(accepted.run_log.path).read_text()

    @property
    def messages(self) -> list[str | None]:
        return [result.message for result in self.results]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.loop.close()


class Recorder:
    """A handler that writes down what is called, and in which thread."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.threads: set[int] = set()

    def note(self, call: str) -> None:
        self.calls.append(call)
        self.threads.add(threading.get_ident())


class Sync(Recorder):
    def init(self) -> None:
        self.note("init")

    def execute(self, ctx: JobContext) -> str:
        self.note("execute")
        return "done"

    def destroy(self) -> None:
        self.note("destroy")


class Async(Recorder):
    async def init(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.note("init")

    async def execute(self) -> str:
        assert asyncio.get_running_loop() is self.loop
        self.note("execute")
        return "done"

    async def destroy(self) -> None:
        assert asyncio.get_running_loop() is self.loop
        self.note("destroy")


@pytest.mark.parametrize("make", [Sync, Async])
def test_a_worker_begins_once_and_ends_once(bench: Bench, make: Callable[[], Any]) -> None:
    handler = make()
    bench.table.register("x", handler)
    bench.run("x")
    bench.run("x")
    assert handler.calls == ["init", "execute", "execute"]
    bench.loop.close()
    bench.loop.close()
    assert handler.calls == ["init", "execute", "execute", "destroy"]
    assert handler.threads == {threading.get_ident()}
    assert bench.messages == ["done", "done"]


def test_hooks_of_a_function_and_those_given_before_those_of_an_object(bench: Bench) -> None:
    calls: list[str] = []
    handler = Sync()
    bench.table.register("x", lambda: "done", init=lambda: calls.append("init"), destroy=lambda: calls.append("end"))
    bench.table.register("y", handler, destroy=lambda: calls.append("end of y"))
    bench.run("x")
    bench.run("y")
    bench.loop.close()
    assert calls == ["init", "end of y", "end"]
    assert handler.calls == ["init", "execute"]


def test_each_worker_begins_for_itself(bench: Bench, tmp_path: Path) -> None:
    other = Bench(tmp_path / "other")
    other.table = bench.table
    handler = Sync()
    bench.table.register("x", handler)
    bench.run("x")
    other.run("x")
    other.loop.close()
    assert handler.calls == ["init", "execute", "init", "execute", "destroy"]


@pytest.mark.parametrize("error", [OSError("no connection"), SystemExit(3)])
def test_an_init_that_raises_fails_the_run_and_is_tried_again(bench: Bench, error: BaseException) -> None:
    calls: list[str] = []

    def init() -> None:
        calls.append("init")
        if len(calls) == 1:
            raise error

    bench.table.register("x", lambda: "done", init=init, destroy=lambda: calls.append("destroy"))
    log = bench.run("x")
    assert "Traceback" in log
    assert "in init" in log
    assert log.count('File "') == 1
    bench.run("x")
    bench.run("x")
    assert [result.code for result in bench.results] == [500, 200, 200]
    assert type(error).__name__ in (bench.messages[0] or "")
    bench.loop.close()
    assert calls == ["init", "init", "destroy"]


def test_a_worker_that_could_not_begin_destroys_nothing(bench: Bench) -> None:
    destroyed: list[str] = []
    bench.table.register("x", lambda: None, init=lambda: 1 / 0, destroy=lambda: destroyed.append("x"))
    bench.run("x")
    bench.loop.close()
    assert destroyed == []


@pytest.mark.parametrize("error", [OSError("connection lost"), SystemExit(3)])
def test_a_destroy_that_raises_is_logged_and_the_others_are_called(
    bench: Bench, caplog: pytest.LogCaptureFixture, error: BaseException
) -> None:
    destroyed: list[str] = []

    def broken() -> None:
        raise error

    bench.table.register("x", lambda: None, destroy=lambda: destroyed.append("x"))
    bench.table.register("y", lambda: None, destroy=broken)
    bench.run("x")
    bench.run("y")
    bench.loop.close()
    assert destroyed == ["x"]
    assert "job.destroy_failed handler=y" in caplog.text
    assert type(error).__name__ in caplog.text
