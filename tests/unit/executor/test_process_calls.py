"""Handlers in child processes, run as a worker does."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobwheel.executor import process_call
from jobwheel.executor.handlers import message_of
from jobwheel.executor.invocation import Outcome
from tests.support import process_handlers as handlers
from tests.support.handler_bench import HandlerBench
from tests.support.process_table import is_alive
from tests.support.recording_admin import wait_until


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[HandlerBench]:
    bench = HandlerBench(tmp_path)
    yield bench
    bench.close()


def numbers_in(log: str) -> list[int]:
    return [
        int(word) for word in next(line for line in log.splitlines() if "process" in line).split() if word.isdigit()
    ]


def test_the_context_tells_the_same_as_in_a_thread(bench: HandlerBench) -> None:
    fields = {
        "log_date_time": 1_700_000_000_000,
        "scheduled_time": 1_699_999_999_500,
        "broadcast_index": 2,
        "broadcast_total": 3,
        "attempt": 4,
        "trigger_type": "RETRY",
    }
    outcome, started = bench.run(handlers.properties, "p", **fields)
    in_thread = started.inside(lambda: handlers.properties(started.context))
    assert outcome.message == message_of(in_thread)


def test_what_is_logged_and_printed_goes_to_the_log_in_order(bench: HandlerBench) -> None:
    outcome, started = bench.run(handlers.talks)
    assert outcome == Outcome(200, "done")
    texts = [
        "[INFO] first",
        "and second",
        "[INFO] third",
        "[WARNING] fourth",
        "[INFO] fifth",
        "[DEBUG] sixth",
        "[INFO] seventh: \ufffd",
        "[ERROR] eighth",
        "[INFO] last, without an end",
    ]
    assert [line for line in started.lines if line != "second"] == [text for text in texts if text != "and second"]
    assert "\nand second\n" in started.log


def test_what_is_written_past_python_goes_to_the_log(bench: HandlerBench) -> None:
    outcome, started = bench.run(handlers.writes_past_python)
    assert outcome == Outcome(200)
    assert started.lines == ["[INFO] raw \ufffd\ufffd", "[INFO] from a process", "[INFO] without an end"]


def test_a_flood_of_output_ends_and_none_of_it_is_lost(bench: HandlerBench) -> None:
    outcome, started = bench.run(handlers.floods)
    assert outcome == Outcome(200, "done")
    assert sum(line.endswith("x" * 80) for line in started.lines) == 20_000
    assert started.log.count("y") == 300_000


def test_an_exception_fails_the_run_as_in_a_thread(bench: HandlerBench) -> None:
    outcome, started = bench.run(handlers.raises, "account")
    assert outcome == Outcome(500, "second line")
    assert started.lines[:2] == ["[INFO] before it", "[ERROR] the handler raised an exception"]
    assert "LookupError: no account" in started.log
    assert started.log.count('File "') == 1
    outcome, _ = bench.run(handlers.leaves)
    assert outcome == Outcome(500, "SystemExit: 3")


@pytest.mark.parametrize(("how", "code"), [("succeed", 200), ("fail", 500), ("time_out", 502)])
def test_an_outcome_that_the_handler_sets_holds(bench: HandlerBench, how: str, code: int) -> None:
    assert bench.run(handlers.outcome, how)[0] == Outcome(code, "said so")


def test_async_handlers_and_typed_parameters(bench: HandlerBench) -> None:
    assert bench.message(handlers.sums) == "3"
    assert bench.message(handlers.add, '{"first": 40}') == "42"
    outcome, _ = bench.run(handlers.add, '{"first": "one"}')
    assert outcome.code == 500
    assert "first: expected int, got str" in (outcome.message or "")


def test_a_hundred_runs_of_one_worker_share_a_child(bench: HandlerBench) -> None:
    processes = {bench.message(handlers.process_id) for _ in range(100)}
    assert len(processes) == 1


@pytest.mark.parametrize("text", ["x" * 200_000, "中" * 200_000, "line\nline\r\n\0", "half \ud83d of it", ""])
def test_parameters_and_results_of_any_size_and_shape(bench: HandlerBench, text: str) -> None:
    assert bench.message(handlers.echo, text) == text.replace("\ud83d", "\ufffd")


def test_progress_comes_through(bench: HandlerBench) -> None:
    seen: list[tuple[int, float, str]] = []
    started = bench.begin(handlers.tells_progress)
    started.context._report_progress = lambda *told: seen.append(told)
    assert started.run() == Outcome(200)
    assert seen == [(1, 0.0, "step 0"), (1, 0.5, "step 1"), (1, 1.0, "step 2")]


def test_a_fault_of_ours_does_not_make_the_next_run_hear_of_this_one(bench: HandlerBench) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("ours")

    bench.message(handlers.process_id)
    started = bench.begin(handlers.tells_progress)
    started.context._report_progress = refuse
    with pytest.raises(RuntimeError, match="ours"):
        started.run()
    assert bench.run(handlers.tells_progress)[0] == Outcome(200)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("exit", "exit code 3"),
        ("segfault", "signal SIGSEGV (11)"),
        ("killed", "signal SIGKILL (9), from outside or for want of memory"),
        ("forked", "exit code 4"),
        ("closed", "signal SIGKILL (9)"),
    ],
)
def test_a_child_that_ends_fails_its_run_and_the_next_gets_a_new_one(
    bench: HandlerBench, how: str, reason: str
) -> None:
    outcome, started = bench.run(handlers.ends, how)
    assert outcome.code == 500
    assert (outcome.message or "").startswith(f"the child process ended during the run: {reason}")
    assert started.lines[0] == "[INFO] last words"
    assert ("Fatal Python error: Segmentation fault" in started.log) is (how == "segfault")
    bench.run(handlers.ends, "exit")


def test_an_endless_handler_is_dead_soon_after_the_kill(bench: HandlerBench) -> None:
    bench.table.register("x", handlers.endless, isolation="process")
    for _ in range(2):
        started = bench.begin("x")
        started.start()
        wait_until(lambda started=started: "process" in started.log)  # type: ignore[misc]
        began = time.perf_counter()
        assert started.invocation.kill()
        assert started.result() == Outcome(500, "killed")
        assert time.perf_counter() - began < 2
        assert not is_alive(numbers_in(started.log)[0])


def test_what_the_handler_has_started_is_killed_with_it(bench: HandlerBench) -> None:
    started = bench.begin(handlers.family)
    started.start()
    wait_until(lambda: "processes" in started.log)
    started.invocation.kill()
    started.result()
    wait_until(lambda: not any(is_alive(each) for each in numbers_in(started.log)))


def test_a_kill_before_the_run_starts_nothing(bench: HandlerBench) -> None:
    started = bench.begin(handlers.process_id)
    assert started.invocation.kill()
    assert started.run() == Outcome(500, "killed before it began")


def test_a_kill_at_any_moment_ends_this_run_or_none(bench: HandlerBench) -> None:
    bench.table.register("x", handlers.process_id, isolation="process")
    for number in range(12):
        started = bench.begin("x")
        started.start()
        # From before the child is there until after the run is over.
        threading.Event().wait(number * 0.04)
        started.invocation.kill()
        assert started.result().code in {200, 500}
        assert bench.run("x")[0].code == 200
    former = bench.message("x")
    started.invocation.kill()
    started.invocation.stop()
    assert bench.message("x") == former


@pytest.mark.parametrize("moment", ["before", "during"])
def test_a_stop_is_seen_by_the_handler(bench: HandlerBench, moment: str) -> None:
    started = bench.begin(handlers.waits_for_stop)
    if moment == "before":
        started.invocation.stop()
    started.start()
    wait_until(lambda: "waiting" in started.log)
    started.invocation.stop()
    assert started.result() == Outcome(200, "stopped: True")
    assert bench.message(handlers.process_id)


def test_a_stop_of_one_run_is_not_seen_by_the_next(bench: HandlerBench) -> None:
    bench.table.register("x", handlers.properties, isolation="process")
    first = bench.begin("x")
    first.invocation.stop()
    assert "true" in (first.run().message or "")
    first.invocation.stop()
    assert "true" not in (bench.message("x") or "")


def test_hooks_are_called_in_the_child(bench: HandlerBench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    bench.table.register("x", handlers.Counting(), isolation="process")
    assert bench.message("x") == '["init","execute"]'
    assert bench.message("x") == '["init","execute","execute"]'
    bench.close()
    assert 'job.child_wrote handler=x text="destroyed after 3 calls"' in caplog.text
    assert bench.message("x") == '["init","execute"]'


def test_an_init_that_raises_is_tried_again_in_the_same_child(bench: HandlerBench) -> None:
    bench.table.register("x", handlers.Counting(fails=True), isolation="process")
    outcome, started = bench.run("x")
    assert outcome == Outcome(500, "OSError: no connection")
    assert "in init" in started.log
    assert bench.message("x") == '["init","init","execute"]'


def test_a_child_that_does_not_leave_is_made_to(bench: HandlerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_call, "_LEAVE_S", 0.2)
    process_id = int(bench.message(handlers.NeverLeaves()) or "")
    assert is_alive(process_id)
    bench.close()
    assert not is_alive(process_id)


def test_a_child_that_ends_between_runs_costs_none(bench: HandlerBench, caplog: pytest.LogCaptureFixture) -> None:
    first = int(bench.message(handlers.process_id) or "")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not is_alive(first))
    outcome, started = bench.run(handlers.process_id)
    assert outcome.code == 200
    assert outcome.message != str(first)
    assert 'job.child_ended_idle handler=process_id how="signal SIGKILL (9)' in caplog.text
    assert started.log == ""


def test_what_is_printed_between_runs_belongs_to_none(bench: HandlerBench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    _, first = bench.run(handlers.prints_later)
    bench.close()
    assert 'job.child_wrote handler=prints_later text="printed between runs"' in caplog.text
    assert "too late" not in caplog.text
    assert first.log == ""


def test_a_system_without_processes_fails_the_run(bench: HandlerBench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refuse)
    outcome, _ = bench.run(handlers.process_id)
    assert outcome.code == 500
    assert (outcome.message or "").startswith("the child process cannot be started: [Errno 11]")
    monkeypatch.undo()
    assert bench.message(handlers.process_id)


def test_nothing_is_left_open(bench: HandlerBench) -> None:
    bench.message(handlers.process_id)
    bench.close()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for how in ("exit", "killed"):
        bench.run(handlers.ends, how)
        bench.message(handlers.process_id)
        bench.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
