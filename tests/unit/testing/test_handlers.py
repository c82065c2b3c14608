import asyncio
import logging
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobwheel import Executor, JobContext
from jobwheel.executor.errors import HandlerError
from jobwheel.testing import run_handler, run_handler_async


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Executor:
    monkeypatch.chdir(tmp_path)
    return Executor(app_name="demo", admin="http://127.0.0.1:9")


def test_a_handler_is_run_and_its_result_and_log_are_seen(executor: Executor, tmp_path: Path) -> None:
    @executor.job("greet")
    def greet(ctx: JobContext) -> str:
        ctx.log.debug("for developers")
        ctx.log.info("greeting %s\nin two lines", ctx.parameter)
        logging.getLogger("shop.orders").info("also seen")
        return f"hello, {ctx.parameter}"

    result = run_handler(executor, "greet", "Zoë")
    assert result.succeeded
    assert (result.code, result.message) == (200, "hello, Zoë")
    assert result.log == (
        "[INFO] start: job 1, run 1, handler greet, parameter: Zoë",
        "[DEBUG] for developers",
        "[INFO] greeting Zoë",
        "in two lines",
        "[INFO] also seen",
        "[INFO] end: code 200, message: hello, Zoë",
    )
    assert list(tmp_path.iterdir()) == []
    assert not executor.started


def test_an_async_handler_is_run_as_well(executor: Executor) -> None:
    @executor.job("fetch")
    async def fetch(ctx: JobContext) -> dict[str, str]:
        await asyncio.to_thread(ctx.log.info, "from a thread")
        return {"page": ctx.parameter}

    result = run_handler(executor, "fetch", "a")
    assert result.message == '{"page":"a"}'
    assert "[INFO] from a thread" in result.log


def test_a_handler_knows_what_the_test_says_of_the_run(executor: Executor) -> None:
    @executor.job("which")
    def which(ctx: JobContext) -> str:
        assert JobContext.current() is ctx
        return f"{ctx.shard_index}/{ctx.shard_total} {ctx.attempt} {ctx.job_id} {ctx.planned_time.isoformat()}"

    planned = datetime(2027, 3, 1, 4, 5, 6, 789_000, UTC)
    result = run_handler(executor, "which", shard=(2, 3), attempt=4, planned_time=planned, job_id=7)
    assert result.message == "2/3 4 7 2027-03-01T04:05:06.789000+00:00"


def test_an_exception_fails_the_run_as_it_would(executor: Executor) -> None:
    @executor.job("fails")
    def fails() -> None:
        raise ValueError("no such page")

    result = run_handler(executor, "fails")
    assert not result.succeeded
    assert (result.code, result.message) == (500, "ValueError: no such page")
    assert "ValueError: no such page" in result.log
    assert result.log[-1] == "[ERROR] end: code 500, message: ValueError: no such page"


def test_a_failure_that_the_handler_tells(executor: Executor) -> None:
    executor.register("refuses", lambda ctx: ctx.fail("which page?"))
    assert run_handler(executor, "refuses").message == "which page?"
    assert not run_handler(executor, "refuses").succeeded


def test_a_sync_handler_runs_in_the_thread_of_the_test(executor: Executor) -> None:
    threads: list[int] = []
    executor.register("where", lambda: threads.append(threading.get_ident()))
    run_handler(executor, "where")
    assert threads == [threading.get_ident()]


async def test_inside_an_event_loop_it_is_awaited(executor: Executor) -> None:
    @executor.job("sleeps")
    async def sleeps(ctx: JobContext) -> str:
        await asyncio.get_running_loop().run_in_executor(None, ctx.log.info, "waited")
        return ctx.parameter

    first, second = await asyncio.gather(
        run_handler_async(executor, "sleeps", "one"), run_handler_async(executor, "sleeps", parameter="two")
    )
    assert (first.message, second.message) == ("one", "two")
    assert (first.log[1], second.log[1]) == ("[INFO] waited", "[INFO] waited")
    assert logging.getLogger().level == logging.WARNING
    with pytest.raises(HandlerError, match="await run_handler_async"):
        run_handler(executor, "sleeps")


def test_an_unknown_handler_is_named_with_those_there_are(executor: Executor) -> None:
    executor.register("one", lambda: None)
    executor.register("two", lambda: None)
    with pytest.raises(HandlerError, match="'three': is not registered; registered: one, two"):
        run_handler(executor, "three")


def test_logging_is_left_as_it_was(executor: Executor) -> None:
    root = logging.getLogger()
    before = (root.level, list(root.handlers))
    executor.register("x", lambda: logging.getLogger().info("seen"))
    assert "[INFO] seen" in run_handler(executor, "x").log
    assert (root.level, root.handlers) == before


def test_a_level_of_the_tests_own_holds(executor: Executor, caplog: pytest.LogCaptureFixture) -> None:
    executor.register("x", lambda: logging.getLogger("shop").info("not seen"))
    with caplog.at_level(logging.ERROR):
        assert len(run_handler(executor, "x").log) == 2
